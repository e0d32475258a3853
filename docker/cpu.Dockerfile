# check=skip=InvalidDefaultArgInFrom
# Engine image without a GPU, for kind, minikube and rehearsals: Ray, vLLM's CPU build and NIXL, all from requirements/.
# Every argument comes from versions.toml through docker-bake.hcl; none has a default here.
ARG PYTHON_IMAGE

FROM ${PYTHON_IMAGE} AS environment
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
ARG UV_VERSION
ARG PYTHON_VERSION
ENV UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never VIRTUAL_ENV=/opt/venv
RUN pip install --no-cache-dir "uv==${UV_VERSION}" && uv venv --python "${PYTHON_VERSION}" "${VIRTUAL_ENV}"
ARG LAYER_LIMIT_MB
# Bytecode now: containers would each compile it for themselves at every start. This package lies beside the environment,
# so that a change of it changes one small layer. In parts, as registries refuse large layers; moved, as it is 9 GB.
RUN --mount=type=bind,source=requirements/runtime-cpu.txt,target=/runtime-cpu.txt \
    --mount=type=bind,source=docker/split_layers.py,target=/split_layers.py \
    uv pip sync --no-cache --require-hashes --compile-bytecode /runtime-cpu.txt \
    && echo /opt/pd-mi325x > /opt/venv/lib/python${PYTHON_VERSION}/site-packages/pd-mi325x.pth \
    && python /split_layers.py /opt/venv /layers/venv --parts 4 --limit-mb "${LAYER_LIMIT_MB}" --move

FROM ${PYTHON_IMAGE} AS package
ARG UV_VERSION
RUN --mount=type=bind,target=/source,rw \
    pip install --no-cache-dir "uv==${UV_VERSION}" \
    && uv pip install --no-cache --no-deps --target /opt/pd-mi325x /source \
    && cp /source/versions.toml /opt/pd-mi325x

FROM ${PYTHON_IMAGE} AS assembled
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
ARG TCMALLOC_PACKAGE
# KubeRay's probes run bash and wget; vLLM on CPU compiles, and wants tcmalloc and NUMA.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bash ca-certificates g++ libnuma1 "${TCMALLOC_PACKAGE}" wget \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 --user-group ray
COPY --from=environment /layers/venv/0 /
COPY --from=environment /layers/venv/1 /
COPY --from=environment /layers/venv/2 /
COPY --from=environment /layers/venv/3 /
COPY --from=package /opt/pd-mi325x /opt/pd-mi325x
ARG TCMALLOC_LIBRARY
# Without either of the two vLLM's CPU worker refuses to start (cpu_worker.py, check_preloaded_libs).
ENV PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LD_PRELOAD=${TCMALLOC_LIBRARY}:/opt/venv/lib/libiomp5.so
WORKDIR /home/ray

FROM assembled AS check
ARG VERSION_SET
RUN python -m serving.image_check "${VERSION_SET}" --output /pd-stack.json

FROM assembled AS engine
COPY --from=check /pd-stack.json /etc/pd-stack.json
USER 1000:1000
