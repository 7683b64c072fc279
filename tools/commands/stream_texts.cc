// Tells streams from files.
#include "tools/commands/stream_texts.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "traces/files/file.h"

namespace bubblescope::tools {

namespace {

/// A path that does not exist is refused where it is opened.
bool is_stream(const std::string& path) {
  if (path == "-") return true;
  std::error_code failed;
  const std::filesystem::file_status status = std::filesystem::status(path, failed);
  return !failed && std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

}  // namespace

StreamTexts::StreamTexts(const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (is_stream(path) && !texts_.contains(path)) texts_.emplace(path, traces::read_file(path));
}

std::optional<std::string_view> StreamTexts::find(const std::string& path) const {
  const auto found = texts_.find(path);
  if (found == texts_.end()) return {};
  return found->second;
}

std::optional<std::string> StreamTexts::take(const std::string& path) {
  const auto found = texts_.find(path);
  if (found == texts_.end()) return {};
  return std::exchange(found->second, {});
}

}  // namespace bubblescope::tools
