##@ Images

IMAGES ?= herald herald-ffmpeg herald-sandbox herald-store
IMAGE_ARCHS ?= amd64 arm64
IMAGE_REGISTRY ?= ghcr.io/herald-social
IMAGE_DIR ?= $(BIN)/images
IMAGE_CACHE ?= $(BIN)/images/cache

# The images' metadata besides the version. The time is the commit's, so that two builds of a commit give the same image.
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

# This machine's Go settings must not affect the build.
image_go := env CGO_ENABLED=0 GOOS=linux GOFLAGS= GOWORK=off GOEXPERIMENT= GOAMD64=v1 GOARM64=v8.0
image_build = build $(shared_flags) -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)'
image_commands = $(if $(filter herald herald-ffmpeg,$(IMAGES)),./cmd/herald) $(if $(filter herald-sandbox,$(IMAGES)),./cmd/herald-sandbox)
image_tests = $(if $(filter herald-e2e-client,$(IMAGES)),./test/e2e/client)
image_flags = --images '$(IMAGES)' --architectures '$(IMAGE_ARCHS)' --programs $(IMAGE_DIR)/programs --cache $(IMAGE_CACHE) \
  --registry $(IMAGE_REGISTRY) --version $(VERSION) --revision '$(REVISION)' --created $(SOURCE_DATE_EPOCH)
image_program = GOWORK=off go -C hack/image run .

.PHONY: image
image: image-programs ## Pack container images into bin/images, without a container engine (docs/images.md)
	@$(image_program) pack --out $(IMAGE_DIR) $(image_flags)

.PHONY: image-tag
image-tag: ## Print the image tag of this checkout, for helm install --set image.tag=
	@echo $(VERSION)

.PHONY: image-programs
image-programs:
	@for arch in $(IMAGE_ARCHS); do
	  out=$(IMAGE_DIR)/programs/linux_$$arch
	  mkdir -p "$$out"
	  echo "building for linux/$$arch"
	  if [ -n '$(strip $(image_commands))' ]; then GOARCH=$$arch $(image_go) go $(image_build) -o "$$out/" $(image_commands); fi
	  if [ -n '$(image_tests)' ]; then GOARCH=$$arch $(image_go) go $(image_build) -o "$$out/herald-e2e-client" $(image_tests); fi
	  if [ -n '$(filter herald-store,$(IMAGES))' ]; then GOARCH=$$arch $(image_go) go -C hack/store $(image_build) -o "$$out/herald-store" .; fi
	done

.PHONY: image-files
image-files: image-programs ## Write the files of one image to OUT, for the Dockerfile (IMAGES=herald IMAGE_ARCHS=amd64 OUT=DIR)
	@$(image_program) unpack --out $(OUT) $(image_flags)

.PHONY: image-packages
image-packages: ## Pin today's Debian packages for the image with ffmpeg
	@$(image_program) packages --out . --cache $(IMAGE_CACHE) --architectures '$(IMAGE_ARCHS)'

# The second build runs in another folder. COLD=1 also makes it compile everything again, which takes minutes.
.PHONY: verify-image
verify-image: image ## Rebuild the images elsewhere, fail if a byte differs, and inspect them (COLD=1 with an empty build cache)
	@again=$$(mktemp -d)
	trap 'rm -rf "$$again"' EXIT
	mkdir "$$again/checkout"
	git ls-files --cached --others --exclude-standard -z | tar --create --null --ignore-failed-read --files-from=- | tar --extract --directory="$$again/checkout"
	if [ -n "$(COLD)" ]; then export GOCACHE="$$again/build-cache"; fi
	$(MAKE) -C "$$again/checkout" image BIN="$$again/bin" IMAGE_CACHE=$(IMAGE_CACHE) IMAGE_DIR="$$again/images" \
	  VERSION=$(VERSION) REVISION=$(REVISION) SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH)
	for image in $(IMAGES); do
	  cmp $(IMAGE_DIR)/$$image.tar "$$again/images/$$image.tar"
	  for arch in $(IMAGE_ARCHS); do
	    cmp $(IMAGE_DIR)/$${image}_linux_$$arch.cdx.json "$$again/images/$${image}_linux_$$arch.cdx.json"
	  done
	done
	echo "verify-image: both builds are the same, byte for byte"
	GOWORK=off go -C hack/image test -count=1 -run TestArchives . -args -images=$(IMAGE_DIR) -architectures='$(IMAGE_ARCHS)'
