// Loads OpenBLAS.
#include "exec/training/blas.h"

#include <cstdlib>

#include "exec/runtime/library_call.h"

namespace bubblescope::exec {

namespace {

#ifndef BUBBLESCOPE_OPENBLAS
#define BUBBLESCOPE_OPENBLAS ""
#endif

/// The library is never unloaded: its own threads and exit handlers live in it.
Blas open_blas() {
  const std::string file = BUBBLESCOPE_OPENBLAS;
  if (file.empty()) return {};
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  void* const library = open_library({file});
  if (library == nullptr) return {};
  Blas blas;
  if (!find_call(library, "cblas_sgemm", blas.multiply)) return {};
  void (*set_threads)(int) = nullptr;
  if (find_call(library, "openblas_set_num_threads", set_threads)) set_threads(1);
  const char* (*describe)() = nullptr;
  blas.name = find_call(library, "openblas_get_config", describe) ? describe() : "OpenBLAS";
  return blas;
}

}  // namespace

const Blas& load_blas() {
  static const Blas blas = open_blas();
  return blas;
}

}  // namespace bubblescope::exec
