# The images, built with Docker: `docker build --target herald .`, or herald-ffmpeg, herald-sandbox or herald-store. They contain the same
# files as `make image`'s, which does not need Docker and is byte-for-byte reproducible.
#
#   --build-arg VERSION=$(git describe --tags --match 'v*')   the output of `herald version`
#   --build-arg REVISION=$(git rev-parse HEAD)
#   --build-arg CREATED=$(git log -1 --format=%cI)

ARG VERSION=v0.0.0-unknown
ARG REVISION=
ARG CREATED=1970-01-01T00:00:00Z

# Go cross-compiles, and no program in the image is run, so the build needs no emulator.
# The digest identifies the tag's index of architectures. After changing the version, print the new one with
# `docker buildx imagetools inspect golang:<version>-trixie`.
FROM --platform=$BUILDPLATFORM golang:1.26.8-trixie@sha256:bdca99a00bc16590cb1a0bb4e698f5fc5d6a64e4d5eef13d9f18a0ee08e5fa65 AS build
WORKDIR /src
COPY . .
ARG TARGETARCH
ARG VERSION
ARG REVISION
ENV IMAGE_ARCHS=$TARGETARCH IMAGE_DIR=/build IMAGE_CACHE=/cache VERSION=$VERSION REVISION=$REVISION SOURCE_DATE_EPOCH=0

FROM build AS herald-files
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    make image-files IMAGES=herald OUT=/files

FROM build AS herald-ffmpeg-files
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build --mount=type=cache,target=/cache \
    make image-files IMAGES=herald-ffmpeg OUT=/files

FROM build AS herald-sandbox-files
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    make image-files IMAGES=herald-sandbox OUT=/files

FROM build AS herald-store-files
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    make image-files IMAGES=herald-store OUT=/files

FROM scratch AS labelled
ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.vendor="The Herald Authors" \
      org.opencontainers.image.url="https://github.com/herald-social/herald" \
      org.opencontainers.image.source="https://github.com/herald-social/herald" \
      org.opencontainers.image.documentation="https://github.com/herald-social/herald/blob/main/docs/images.md" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED"
USER 65532:65532

FROM labelled AS herald-ffmpeg
LABEL org.opencontainers.image.title="Herald with ffmpeg" \
      org.opencontainers.image.description="Herald, and the ffmpeg that takes thumbnails out of videos" \
      org.opencontainers.image.licenses="Apache-2.0 AND GPL-2.0-or-later"
ENV PATH=/usr/bin
COPY --from=herald-ffmpeg-files /files /
ENTRYPOINT ["/herald"]

FROM labelled AS herald-sandbox
LABEL org.opencontainers.image.title="Herald's sandbox" \
      org.opencontainers.image.description="Simulated social platforms for trials of Herald" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=herald-sandbox-files /files /
EXPOSE 9100/tcp
ENTRYPOINT ["/herald-sandbox"]
CMD ["--listen=:9100"]

FROM labelled AS herald-store
LABEL org.opencontainers.image.title="Herald's store for trials" \
      org.opencontainers.image.description="An S3-compatible store for trials of Herald, the Versity gateway over one folder" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=herald-store-files /files /
EXPOSE 9000/tcp
ENTRYPOINT ["/herald-store"]
CMD ["--listen=:9000", "--allow-remote", "--data-dir=/data", "--credentials=/etc/herald-store/credentials.json"]

# The last one is built without --target.
FROM labelled AS herald
LABEL org.opencontainers.image.title="Herald" \
      org.opencontainers.image.description="Publishes one post to several social platforms, never twice and never lost" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=herald-files /files /
ENTRYPOINT ["/herald"]
