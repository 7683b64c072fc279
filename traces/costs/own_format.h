// Files of ours that are given as files of other kinds.
#pragma once

#include <string>

#include "traces/json/json_node.h"

namespace bubblescope::traces {

/// Refuses a file whose format key says that it is one of ours, such as costs that are given as a
/// model: the first key that it lacks would say less. `wanted` is what it should be.
inline void refuse_own_format(const JsonNode& root, const std::string& wanted) {
  if (!root.is_object()) return;
  const auto format = root.find("format");
  if (format && format->is_text() && format->text().starts_with("bubblescope-"))
    format->refuse("is '" + format->text() + "', but " + wanted + " is needed here");
}

}  // namespace bubblescope::traces
