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

std::string epilogues_json(const std::vector<EpilogueUse>& uses) {
  std::string list;
  for (const EpilogueUse& use : uses) {
    const std::string k = std::to_string(use.k);  // "inner" is its old name
    list += std::string(list.empty() ? "" : ",") + "{\"epilogue\":\"" +
            (use.is_gradient ? "gelu_grad" : "gelu") + "\",\"rows\":" + std::to_string(use.rows) +
            ",\"k\":" + k + ",\"inner\":" + k + ",\"columns\":" + std::to_string(use.columns) +
            ",\"fused\":" + (use.is_fused ? "true" : "false") + "}";
  }
  return "\"epilogues\":[" + list + "]";
}

}  // namespace bubblescope::exec
