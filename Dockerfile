# A server for one translator, from the wheel; docs/how-to/serving.md says how to run it.
FROM python:3.12-slim AS build
COPY . /src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /src

FROM python:3.12-slim
ARG TORCH_INDEX=
RUN pip install --no-cache-dir torch ${TORCH_INDEX:+--index-url $TORCH_INDEX}
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[serve]"
RUN useradd --system translator && install --directory --owner translator --mode 700 /cache
USER translator
ENV XDG_CACHE_HOME=/cache
EXPOSE 5000
HEALTHCHECK CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:5000/health')"]
CMD ["glassformer", "serve", "/bundle", "--host", "0.0.0.0", "--api-key-file", "/run/keys"]
