# check=skip=InvalidDefaultArgInFrom
# What measures: AIPerf in an environment of its own, and this package with what `python -m benchmarks` imports.
# Every argument comes from versions.toml through docker-bake.hcl; none has a default here.
ARG PYTHON_IMAGE

FROM ${PYTHON_IMAGE} AS environment
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
ARG UV_VERSION
ARG PYTHON_VERSION
ENV UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never
RUN pip install --no-cache-dir "uv==${UV_VERSION}" \
    && uv venv --python "${PYTHON_VERSION}" /opt/aiperf && uv venv --python "${PYTHON_VERSION}" /opt/venv
RUN --mount=type=bind,source=requirements,target=/requirements \
    uv pip sync --no-cache --require-hashes --compile-bytecode --python /opt/aiperf/bin/python \
       /requirements/benchmark.txt \
    && uv pip sync --no-cache --require-hashes --compile-bytecode --python /opt/venv/bin/python \
       /requirements/benchmark-image.txt
# This package lies beside the environment, so that a change of it changes one small layer.
RUN echo /opt/pd-mi325x > /opt/venv/lib/python${PYTHON_VERSION}/site-packages/pd-mi325x.pth

FROM environment AS package
RUN --mount=type=bind,target=/source,rw \
    uv pip install --no-cache --no-deps --python /opt/venv/bin/python --target /opt/pd-mi325x /source \
    && cp /source/versions.toml /opt/pd-mi325x

FROM ${PYTHON_IMAGE} AS assembled
RUN useradd --create-home --uid 1000 --user-group benchmark
COPY --from=environment /opt/aiperf /opt/aiperf
COPY --from=environment /opt/venv /opt/venv
COPY --from=package /opt/pd-mi325x /opt/pd-mi325x
ENV PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PD_MI325X_AIPERF=/opt/aiperf/bin/aiperf
WORKDIR /home/benchmark

# As the user that runs it: what cannot be imported or found fails the build.
FROM assembled AS benchmark
USER 1000:1000
RUN "${PD_MI325X_AIPERF}" --version && python -m benchmarks scenarios && python -m serving.weights_download --help
