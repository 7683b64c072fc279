// Loads OpenBLAS.
#include "exec/training/blas.h"

#include <dlfcn.h>

#include <cstdlib>

namespace bubblescope::exec {

namespace {

#ifndef BUBBLESCOPE_OPENBLAS
#define BUBBLESCOPE_OPENBLAS ""
#endif

template <class Function>
Function find_function(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

/// The library is never unloaded: its own threads and exit handlers live in it.
Blas open_blas() {
  const std::string file = BUBBLESCOPE_OPENBLAS;
  if (file.empty()) return {};
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  Blas blas;
  blas.multiply = find_function<GemmFunction>(library, "cblas_sgemm");
  if (blas.multiply == nullptr) return {};
  if (const auto set = find_function<void (*)(int)>(library, "openblas_set_num_threads")) set(1);
  const auto describe = find_function<const char* (*)()>(library, "openblas_get_config");
  blas.name = describe != nullptr ? describe() : "OpenBLAS";
  return blas;
}

}  // namespace

const Blas& load_blas() {
  static const Blas blas = open_blas();
  return blas;
}

}  // namespace bubblescope::exec
