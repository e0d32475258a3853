// The images. Every argument comes from versions.toml: `python -m tools.image_builder.arguments print` writes them as a second bake
// file, which `make images` passes; so `docker buildx bake` alone says which are missing.
variable "TAG" { default = "local" }
variable "REGISTRY" { default = "pd-mi325x" }

group "default" { targets = ["cpu", "benchmark"] }

target "_common" {
  context = "."
}

target "rocm" {
  inherits   = ["_common", "rocm-arguments"]
  dockerfile = "docker/rocm.Dockerfile"
  target     = "engine"
  tags       = ["${REGISTRY}/engine-rocm:${TAG}"]
}

target "rocm-debug" {
  inherits = ["rocm"]
  target   = "debug"
  tags     = ["${REGISTRY}/engine-rocm-debug:${TAG}"]
}

target "cpu" {
  inherits   = ["_common", "cpu-arguments"]
  dockerfile = "docker/cpu.Dockerfile"
  target     = "engine"
  tags       = ["${REGISTRY}/engine-cpu:${TAG}"]
}

target "benchmark" {
  inherits   = ["_common", "benchmark-arguments"]
  dockerfile = "docker/benchmark.Dockerfile"
  target     = "benchmark"
  tags       = ["${REGISTRY}/benchmark:${TAG}"]
}
