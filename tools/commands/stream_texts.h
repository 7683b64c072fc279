// The texts of streams (stdin, pipes), which can be read only once: find() leaves a text to later
// readers, and the last one takes it, so that it does not stay in memory.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bubblescope::tools {

class StreamTexts {
 public:
  StreamTexts() = default;
  /// Reads those of the paths that are streams to their ends; "-" is stdin. Throws Error.
  explicit StreamTexts(const std::vector<std::string>& paths);

  /// The text of a path; nullopt if it is not a stream.
  std::optional<std::string_view> find(const std::string& path) const;

  /// The same, and empties it here. Threads may take the texts of different paths at once.
  std::optional<std::string> take(const std::string& path);

 private:
  std::map<std::string, std::string> texts_;
};

}  // namespace bubblescope::tools
