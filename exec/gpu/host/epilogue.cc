// Formats the epilogues of a run.
#include "exec/gpu/host/epilogue.h"

namespace bubblescope::exec {

std::string to_string(const std::vector<EpilogueUse>& uses) {
  std::string text;
  for (const EpilogueUse& use : uses) {
    const std::string k = std::to_string(use.k);
    text += text.empty() ? "" : "; ";
    text += use.is_gradient ? "GELU's gradient " : "GELU ";
    text += use.is_fused ? "within " : "after ";
    text += std::to_string(use.rows) + " x " + k + " by " + k + " x " + std::to_string(use.columns);
    if (!use.is_fused) text += ", which cuBLASLt cannot fuse";
  }
  return text;
}

}  // namespace bubblescope::exec
