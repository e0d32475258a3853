# check=skip=InvalidDefaultArgInFrom
# Engine image for AMD Instinct GPUs: ROCm, UCX, RIXL, Triton, vLLM, Ray. Every argument comes from versions.toml through
# docker-bake.hcl; none has a default here. A stage called *-source can be replaced by a named context of that name: a
# mirror, a patched tree, or what tests have in its place.
ARG BUILD_IMAGE
ARG PYTHON_IMAGE

# --- sources -----------------------------------------------------------------------------------------------------------
FROM scratch AS ucx-source
ARG UCX_REPOSITORY
ARG UCX_COMMIT
# hadolint ignore=DL3020
ADD --keep-git-dir=true ${UCX_REPOSITORY}#${UCX_COMMIT} /

FROM scratch AS rixl-source
ARG RIXL_REPOSITORY
ARG RIXL_COMMIT
# hadolint ignore=DL3020
ADD ${RIXL_REPOSITORY}#${RIXL_COMMIT} /

# --- what compiles -----------------------------------------------------------------------------------------------------
FROM ${BUILD_IMAGE} AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
# RIXL: asio, hipify-perl (in ROCm), meson and its wraps; UCX: autotools, verbs and rdmacm headers.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
       autoconf automake build-essential ca-certificates git libasio-dev libibverbs-dev libnuma-dev librdmacm-dev \
       libtool patchelf pkg-config python3-pip \
    && rm -rf /var/lib/apt/lists/*
ARG UV_VERSION
ARG PYTHON_VERSION
ENV UV_PYTHON_INSTALL_DIR=/opt/python
RUN python3 -m pip install --no-cache-dir "uv==${UV_VERSION}" \
    && { uv python find "${PYTHON_VERSION}" || uv python install "${PYTHON_VERSION}"; }

# With its .git: `ucx_info` then tells the commit, which the check reads.
FROM build AS ucx
WORKDIR /source
RUN --mount=type=bind,from=ucx-source,target=/source,rw \
    ./autogen.sh \
    && ./configure --prefix=/usr/local/ucx --enable-shared --disable-static --disable-doxygen-doc \
       --enable-optimizations --enable-devel-headers --enable-mt --with-verbs --with-dm --with-rocm=/opt/rocm \
    && make -j"$(nproc)" install

FROM build AS rixl
COPY --from=ucx /usr/local/ucx /usr/local/ucx
ARG PYTHON_VERSION
ARG WHEEL_PLATFORM
ENV VIRTUAL_ENV=/opt/rixl-build PATH=/opt/rixl-build/bin:${PATH}
RUN --mount=type=bind,source=requirements/rixl-build.txt,target=/rixl-build.txt \
    uv venv --python "${PYTHON_VERSION}" "${VIRTUAL_ENV}" \
    && uv pip sync --no-cache --require-hashes /rixl-build.txt
# build-wheel.sh reads _ucx_install_dir and sets it nowhere; without it RIXL is built without its UCX plugin. Its default
# platform, manylinux_2_39, is a newer glibc than that of this image.
WORKDIR /source
RUN --mount=type=bind,from=rixl-source,target=/source,rw \
    export _ucx_install_dir=/usr/local/ucx LD_LIBRARY_PATH=/usr/local/ucx/lib PKG_CONFIG_PATH=/usr/local/ucx/lib/pkgconfig \
    && meson setup build --prefix=/usr/local/rixl -Ducx_path=/usr/local/ucx -Drocm_path=/opt/rocm \
    && ninja -C build install \
    && ./contrib/build-wheel.sh --python-version "${PYTHON_VERSION}" \
       --platform "${WHEEL_PLATFORM}" --output-dir /wheels --rocm-dir /opt/rocm \
       --ucx-plugins-dir /usr/local/ucx/lib/ucx --nixl-plugins-dir "$(dirname "$(find /usr/local/rixl -name 'libplugin_UCX.so')")"

# Only the short hash of this commit is known, which git does not fetch: the whole history's commits, and one's files.
FROM build AS triton-clone
ARG TRITON_REPOSITORY
ARG TRITON_COMMIT
RUN git clone --quiet --filter=blob:none "${TRITON_REPOSITORY}" /source && git -C /source checkout --quiet "${TRITON_COMMIT}"

FROM scratch AS triton-source
COPY --from=triton-clone /source /

FROM build AS triton
ARG PYTHON_VERSION
RUN --mount=type=bind,from=triton-source,target=/source,rw \
    uv build --wheel --python "${PYTHON_VERSION}" --out-dir /wheels /source

# --- what is installed -------------------------------------------------------------------------------------------------
FROM ${PYTHON_IMAGE} AS environment
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
ARG UV_VERSION
ARG PYTHON_VERSION
ENV UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never VIRTUAL_ENV=/opt/venv
RUN pip install --no-cache-dir "uv==${UV_VERSION}" && uv venv --python "${PYTHON_VERSION}" "${VIRTUAL_ENV}"
ARG RAY_VERSION
ARG VLLM_VERSION
ARG VLLM_INDEX
# The index has vLLM, and the torch that it was built with; uv takes a name from the first index that has it. On another
# Python it would have nothing, and PyPI's vLLM is for CUDA.
RUN --mount=type=bind,source=docker,target=/docker \
    uv pip install --no-cache --extra-index-url "${VLLM_INDEX}" --constraints /docker/rocm-constraints.txt \
       "vllm==${VLLM_VERSION}" "ray[serve]==${RAY_VERSION}" --requirements /docker/rocm-extra.txt
# After vLLM, which asks for another Triton; nothing is resolved from here on.
RUN --mount=type=bind,from=triton,source=/wheels,target=/triton \
    --mount=type=bind,from=rixl,source=/wheels,target=/rixl \
    uv pip install --no-cache --no-deps --reinstall /triton/*.whl /rixl/*.whl
# This package lies beside the environment, so that a change of it changes one small layer.
RUN echo /opt/pd-mi325x > /opt/venv/lib/python${PYTHON_VERSION}/site-packages/pd-mi325x.pth

FROM environment AS package
RUN --mount=type=bind,target=/source,rw \
    uv pip install --no-cache --no-deps --target /opt/pd-mi325x /source \
    && cp /source/versions.toml /opt/pd-mi325x

# Registries refuse large layers (DOKS: 5 GB): ROCm and the environment are copied in parts. ROCm keeps its compiler, as
# AITER compiles kernels when it first needs them, and loses what is for other GPUs.
FROM build AS layers
ARG GPU_TARGET
ARG LAYER_LIMIT_MB
RUN --mount=type=bind,source=docker/split_layers.py,target=/split_layers.py \
    --mount=type=bind,from=environment,source=/opt,target=/environment \
    python3 /split_layers.py "$(readlink -f /opt/rocm)" /layers/rocm --as /opt/rocm --parts 6 \
       --limit-mb "${LAYER_LIMIT_MB}" --only-gpu "${GPU_TARGET}" \
    && python3 /split_layers.py /environment/venv /layers/venv --as /opt/venv --parts 4 --limit-mb "${LAYER_LIMIT_MB}"

FROM ${PYTHON_IMAGE} AS assembled
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
# KubeRay's probes run bash and wget. Verbs and rdmacm are UCX's; the others are ROCm's and vLLM's.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
       bash ca-certificates g++ ibverbs-providers libdrm-amdgpu1 libelf1 libibverbs1 libnuma1 librdmacm1 wget \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 --user-group ray
COPY --from=layers /layers/rocm/0 /
COPY --from=layers /layers/rocm/1 /
COPY --from=layers /layers/rocm/2 /
COPY --from=layers /layers/rocm/3 /
COPY --from=layers /layers/rocm/4 /
COPY --from=layers /layers/rocm/5 /
COPY --from=ucx /usr/local/ucx /usr/local/ucx
COPY --from=layers /layers/venv/0 /
COPY --from=layers /layers/venv/1 /
COPY --from=layers /layers/venv/2 /
COPY --from=layers /layers/venv/3 /
COPY --from=package /opt/pd-mi325x /opt/pd-mi325x
ENV PATH=/opt/venv/bin:/opt/rocm/bin:/usr/local/ucx/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LD_LIBRARY_PATH=/opt/rocm/lib:/usr/local/ucx/lib \
    ROCM_PATH=/opt/rocm
WORKDIR /home/ray

# --- what is in it -----------------------------------------------------------------------------------------------------
FROM assembled AS check
ARG VERSION_SET
RUN python -m serving.image_check "${VERSION_SET}" --output /pd-stack.json

FROM assembled AS engine
COPY --from=check /pd-stack.json /etc/pd-stack.json
USER 1000:1000

FROM engine AS debug
USER 0:0
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
       ethtool gdb ibverbs-utils iproute2 iputils-ping numactl perftest rdma-core strace tcpdump \
    && rm -rf /var/lib/apt/lists/*
USER 1000:1000
