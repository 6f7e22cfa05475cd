# The service with its default bundle inside, and nothing of the training stack.
#
#   docker build --tag adrel .                    one target, `cpu`: the default
#   docker build --target gpu --tag adrel:gpu .   ONNX Runtime for CUDA with its libraries, fp16 bundle
#   docker run --rm --read-only --cap-drop ALL --publish 127.0.0.1:8000:8000 adrel
#
# `make image-test` builds it and proves it, with docker, podman or buildah.
ARG BASE_IMAGE=python:3.11-slim-bookworm


FROM ${BASE_IMAGE} AS requirements
WORKDIR /build
# Only what decides the dependencies, so that a change of code does not install them again.
COPY pyproject.toml requirements.lock ./
# pip builds this folder to read its extras; these two are named in pyproject.toml.
RUN touch README.md LICENSE
# Where pip looks, for networks with a mirror; unset, it is PyPI. Credentials and anything else
# that pip can be told belong in the secret `pip_conf`, which no layer and no history keeps.
ARG PIP_INDEX_URL
# PyPI's torch for Linux carries CUDA, some gigabytes that the export stages have no use for. An
# index with CPU wheels given here shortens the build; the image is the same.
ARG PIP_EXTRA_INDEX_URL


# What the service needs. pip has done its work then and would only be there for an intruder.
# Compiled here, since the root filesystem of a container is read-only and compiling would cost
# every start. Unchecked, since an image's files never change under their bytecode.
FROM requirements AS packages_cpu
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    python3 -m venv /srv/venv \
    && /srv/venv/bin/pip install --no-cache-dir --no-compile \
        --constraint requirements.lock '.[serve]' \
    && /srv/venv/bin/pip uninstall --quiet --yes adrel setuptools pip \
    && /srv/venv/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /srv/venv/lib


FROM requirements AS packages_gpu
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    python3 -m venv /srv/venv \
    && /srv/venv/bin/pip install --no-cache-dir --no-compile \
        --constraint requirements.lock '.[serve-gpu]' \
    && /srv/venv/bin/pip uninstall --quiet --yes adrel setuptools pip \
    && /srv/venv/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /srv/venv/lib


FROM ${BASE_IMAGE} AS code
COPY service/ /srv/adrel/service/
RUN python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /srv/adrel/service


FROM requirements AS export
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    python3 -m venv /srv/export \
    && /srv/export/bin/pip install --no-cache-dir --constraint requirements.lock '.[export]'
COPY service/ service/
COPY model_export/ model_export/
ENV ORT_DISABLE_TELEMETRY=1


# The service runs as another user than the one that exports. Without latency in the report, which
# would be of the machine that builds, the bundle's bytes are the same in every build.
FROM export AS bundle_cpu
RUN /srv/export/bin/python -m model_export export --precision int8 --no-latency \
        --out bundles/default \
    && chmod -R a=rX,u+w bundles


FROM export AS bundle_gpu
RUN /srv/export/bin/python -m model_export export --precision fp16 --no-latency \
        --out bundles/default \
    && chmod -R a=rX,u+w bundles


# Apart from the service: built by `docker compose --profile loadtest`, or --target loadtest.
FROM requirements AS loadtest
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    python3 -m venv /srv/venv \
    && /srv/venv/bin/pip install --no-cache-dir --constraint requirements.lock '.[loadtest]' \
    && /srv/venv/bin/pip uninstall --quiet --yes adrel setuptools pip
# The folder is there so that a volume in its place belongs to the user, too.
RUN echo adrel:x:10001:10001::/nonexistent:/usr/sbin/nologin >>/etc/passwd \
    && echo adrel:x:10001: >>/etc/group \
    && install --directory --owner 10001 --group 10001 /report
WORKDIR /srv/adrel
COPY service/ service/
COPY model_export/ model_export/
COPY deploy/benchmarks/ deploy/benchmarks/
COPY deploy/loadtest/ deploy/loadtest/
ENV MPLCONFIGDIR=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
ENTRYPOINT ["/srv/venv/bin/python", "-m", "deploy.loadtest", "--out", "/report"]


FROM ${BASE_IMAGE} AS runtime
# A fixed number, so that an orchestrator can check that it is not root, and who owns a volume.
RUN echo adrel:x:10001:10001::/nonexistent:/usr/sbin/nologin >>/etc/passwd \
    && echo adrel:x:10001: >>/etc/group
# Everything belongs to root: the service can change none of it.
COPY LICENSE deploy/docker/healthcheck.py /srv/adrel/
# In a container loopback is nobody's; what reaches the port is decided where it is published.
ENV ADREL_BUNDLE=/srv/adrel/bundles/default \
    ADREL_HOST=0.0.0.0 \
    ADREL_PORT=8000 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# ONNX Runtime's wheels report models and sessions to their maker since 1.29, unless this is set
# before the first import; the API's switch lets an event out first.
ENV ORT_DISABLE_TELEMETRY=1
WORKDIR /srv/adrel
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/srv/venv/bin/python", "-I", "-S", "/srv/adrel/healthcheck.py"]
ENTRYPOINT ["/srv/venv/bin/python", "-m", "service"]
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="adrel" \
      org.opencontainers.image.description="Low-latency ad relevance scoring with a quantized BERT cross-encoder" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"


# In each: least likely to change first, and the revision last, which then changes no layer.
FROM runtime AS gpu
COPY --from=packages_gpu /srv/venv /srv/venv
COPY --from=bundle_gpu /build/bundles/default /srv/adrel/bundles/default
COPY --from=code /srv/adrel/service /srv/adrel/service
ENV ADREL_PROVIDER=cuda
# What the container toolkit of the host has to hand in: the device, and the driver's libraries.
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute
ARG REVISION=unknown
LABEL org.opencontainers.image.revision="${REVISION}"


FROM runtime AS cpu
COPY --from=packages_cpu /srv/venv /srv/venv
COPY --from=bundle_cpu /build/bundles/default /srv/adrel/bundles/default
COPY --from=code /srv/adrel/service /srv/adrel/service
ARG REVISION=unknown
LABEL org.opencontainers.image.revision="${REVISION}"
