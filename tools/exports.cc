// Which format a file has, and that no two are one.
#include "tools/exports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>

#include "sim/ir/error.h"
#include "traces/format.h"

namespace bubblescope {

namespace {

bool ends_like(const std::string& path, const std::vector<std::string>& endings) {
  std::string name = CLI::detail::to_lower(path);
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return std::any_of(endings.begin(), endings.end(),
                     [&](const std::string& ending) { return name.ends_with(ending); });
}

/// A file whose name ends as another format's files do is a mistake, as is a picture of a kind that
/// nobody here draws.
void expect_ending(const TimelineFormat& format, const std::string& path) {
  if (format.endings.empty() || ends_like(path, format.endings)) return;
  bool foreign = ends_like(path, {".jpg", ".jpeg", ".gif"});
  if (foreign && format.endings.size() > 1)
    throw Error(fmt::format("--{}: cannot write {}; the endings are {}", format.name, path,
                            fmt::join(format.endings, ", ")));
  for (const TimelineFormat& other : Registry<TimelineFormat>::instance().all())
    foreign = foreign || ends_like(path, other.endings);
  if (foreign) throw Error("--" + format.name + ": " + path + " has the ending of another format");
}

}  // namespace

void expect_folder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (path != "-" && !folder.empty() && !std::filesystem::exists(folder))
    throw Error("cannot create " + path + ": no such folder; make its folder first");
}

void expect_sound(const ExportOptions& exports, bool stdout_is_taken) {
  std::map<std::string, std::string> format_of_path;
  if (stdout_is_taken) format_of_path["-"] = "format";
  for (const auto& [name, path] : exports) {
    if (!path) continue;
    if (path->empty()) throw Error("--" + name + " has an empty file name");
    expect_folder(*path);
    if (const TimelineFormat* format = Registry<TimelineFormat>::instance().find(name))
      expect_ending(*format, *path);
    const auto [taken, is_new] = format_of_path.emplace(*path, name);
    if (!is_new)
      throw Error(fmt::format("--{} and --{} both write {}; give each its own file", taken->second,
                              name, *path));
  }
}

void write_and_say(const std::string& path, const std::string& content, const std::string& remark) {
  write_file(path, content);
  if (path != "-") fmt::print(stderr, "wrote {}{}\n", path, remark);
}

void write_exports(const Step& step, const ExportOptions& exports) {
  for (const auto& [name, path] : exports) {
    if (!path) continue;
    const TimelineFormat* format = Registry<TimelineFormat>::instance().find(name);
    write_and_say(*path, format->write(step.recording(), *path),
                  step.report.noise ? ", without the noise" : "");
  }
}

}  // namespace bubblescope
