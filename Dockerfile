# The service as one image, whose commands are `serve`, `api`, `worker` and `migrate`.
# Any image with Python 3.11 or newer, its venv module and glibc serves as the base.
ARG BASE_IMAGE=docker.io/library/python:3.13-slim-bookworm

FROM ${BASE_IMAGE} AS build
RUN python3 -m venv /opt/ccmtl
ENV PATH=/opt/ccmtl/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY requirements/runtime.txt requirements/
# Prebuilt packages only, but on ARM64, where pyamg has none: there the base must have a C++ compiler.
RUN if [ "$(uname -m)" = aarch64 ]; then wheels=--prefer-binary; else wheels="--only-binary :all:"; fi \
    && pip install $wheels -r requirements/runtime.txt
COPY pyproject.toml README.md ./
COPY ccmtl_core/ ccmtl_core/
COPY app/ app/
COPY migrations/ migrations/
RUN pip install --no-deps .
# Compiled for the processor that builds; on another one the first job compiles again, once.
ENV NUMBA_CACHE_DIR=/var/cache/ccmtl
COPY scripts/warm_cache.py scripts/
RUN python scripts/warm_cache.py

FROM ${BASE_IMAGE}
RUN groupadd --gid 10001 ccmtl \
    && useradd --uid 10001 --gid ccmtl --home-dir /var/lib/ccmtl --no-create-home --shell /usr/sbin/nologin ccmtl \
    && install --directory --owner=ccmtl --group=ccmtl /var/lib/ccmtl
COPY --from=build /opt/ccmtl /opt/ccmtl
COPY --from=build --chown=10001:10001 /var/cache/ccmtl /var/cache/ccmtl
ENV PATH=/opt/ccmtl/bin:$PATH \
    NUMBA_CACHE_DIR=/var/cache/ccmtl \
    PYTHONUNBUFFERED=1 \
    CCMTL_DATA_DIR=/var/lib/ccmtl \
    CCMTL_HOST=0.0.0.0 \
    CCMTL_PORT=8000
USER 10001:10001
WORKDIR /var/lib/ccmtl
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["python", "-c", \
    "import http.client as h, os; c = h.HTTPConnection('127.0.0.1', int(os.environ['CCMTL_PORT']), timeout=4); \
     c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["ccmtl"]
CMD ["serve"]
