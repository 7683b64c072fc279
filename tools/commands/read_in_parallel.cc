// Threads take the next file until none is left.
#include "tools/commands/read_in_parallel.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "traces/files/file.h"

namespace bubblescope::tools {

namespace {

/// The text that may be in memory at once, of all files together.
constexpr std::uintmax_t kMaxText = std::uintmax_t{4} << 30;
constexpr std::uintmax_t kUsualGrowth = 12;  ///< of packed traces

std::uintmax_t text_size(const std::string& path) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed) return 0;
  return path.ends_with(".gz") ? size * kUsualGrowth : size;
}

std::size_t count_threads(const std::vector<std::string>& paths) {
  std::uintmax_t largest = 1;
  for (const std::string& path : paths) largest = std::max(largest, text_size(path));
  const std::uintmax_t by_memory = std::max<std::uintmax_t>(1, kMaxText / largest);
  const std::uintmax_t processors = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<std::size_t>(std::min({by_memory, processors, std::uintmax_t{paths.size()}}));
}

traces::ObservedTrace read_one(const std::string& path, const traces::NameRules& rules,
                               StreamTexts& streams) {
  const std::optional<std::string> text = streams.take(path);
  if (!text) return traces::read_trace(path, &rules);
  return traces::parse_trace({traces::name_input(path), *text, &rules});
}

}  // namespace

std::vector<ReadOutcome> read_in_parallel(const std::vector<std::string>& paths,
                                          const traces::NameRules& rules, StreamTexts& streams) {
  std::vector<ReadOutcome> outcomes(paths.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t at = next++; at < paths.size(); at = next++) try {
        outcomes[at].trace = read_one(paths[at], rules, streams);
      } catch (...) {
        outcomes[at].failed = std::current_exception();
      }
  };
  const std::size_t count = count_threads(paths);
  std::vector<std::jthread> threads;
  for (std::size_t more = 1; more < count; ++more) threads.emplace_back(work);
  work();
  threads.clear();  // waits for them
  return outcomes;
}

}  // namespace bubblescope::tools
