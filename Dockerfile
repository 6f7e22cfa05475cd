# The service with its default bundle inside, and nothing of the training stack.
#
#   docker build --tag adrel .
#   docker run --rm --read-only --cap-drop ALL --publish 127.0.0.1:8000:8000 adrel
#
# deploy/docker/build_and_smoke.sh builds it and proves it, with docker, podman or buildah.
ARG BASE_IMAGE=python:3.11-slim-bookworm


FROM ${BASE_IMAGE} AS requirements
WORKDIR /build
# Only what decides the dependencies, so that a change of code does not install them again.
COPY pyproject.toml requirements.lock ./
# pip builds this folder to read its extras; these two are named in pyproject.toml.
RUN touch README.md LICENSE


FROM requirements AS serve
# Where pip looks, for networks with a mirror; unset, it is PyPI. Credentials and anything else
# that pip can be told belong in the secret `pip_conf`, which no layer and no history keeps.
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
# The package itself goes out again: the code is copied beside the venv, in a layer of its own.
# pip has done its work and would only be there for an intruder.
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    python3 -m venv /srv/venv \
    && /srv/venv/bin/pip install --no-cache-dir --no-compile \
        --constraint requirements.lock '.[serve]' \
    && /srv/venv/bin/pip uninstall --quiet --yes adrel setuptools pip
COPY service/ /srv/adrel/service/
# Compiled here, since the root filesystem of a container is read-only and compiling would cost
# every start. Unchecked, since an image's files never change under their bytecode.
RUN /srv/venv/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash \
        /srv/venv/lib /srv/adrel/service


FROM requirements AS bundle
ARG PIP_INDEX_URL
# PyPI's torch for Linux carries CUDA, some gigabytes that this stage has no use for. An index
# with CPU wheels given here shortens the build; the image is the same.
ARG PIP_EXTRA_INDEX_URL
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    python3 -m venv /srv/export \
    && /srv/export/bin/pip install --no-cache-dir --constraint requirements.lock '.[export]'
COPY service/ service/
COPY model_export/ model_export/
ENV ORT_DISABLE_TELEMETRY=1
# The service runs as another user than the one that exports.
RUN /srv/export/bin/python -m model_export export --precision int8 --out bundles/default \
    && chmod -R a=rX,u+w bundles


# Apart from the service: built by `docker compose --profile loadtest`, or --target loadtest.
FROM requirements AS loadtest
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    python3 -m venv /srv/venv \
    && /srv/venv/bin/pip install --no-cache-dir --constraint requirements.lock '.[loadtest]' \
    && /srv/venv/bin/pip uninstall --quiet --yes adrel setuptools pip
# The folder is there so that a volume in its place belongs to the user, too.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin adrel \
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


FROM ${BASE_IMAGE} AS final
# A fixed number, so that an orchestrator can check that it is not root, and who owns a volume.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin adrel
# Least likely to change first. Everything belongs to root: the service can change none of it.
COPY LICENSE deploy/docker/healthcheck.py /srv/adrel/
COPY --from=serve /srv/venv /srv/venv
COPY --from=bundle /build/bundles/default /srv/adrel/bundles/default
COPY --from=serve /srv/adrel/service /srv/adrel/service

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

# Last: a new revision then changes no layer.
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="adrel" \
      org.opencontainers.image.description="Low-latency ad relevance scoring with a quantized BERT cross-encoder" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
