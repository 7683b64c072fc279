// Sets options of glibc's heap.
#include "exec/runtime/keep_memory.h"

#include <limits>  // any C header defines the C library's macro

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace bubblescope::exec {

void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr int kMaxThreshold = 32 << 20;  // the largest value that mallopt() accepts
  mallopt(M_MMAP_THRESHOLD, kMaxThreshold);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

}  // namespace bubblescope::exec
