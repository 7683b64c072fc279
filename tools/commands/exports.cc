// Checks file names against formats, and that no two files are the same.
#include "tools/commands/exports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>

#include "sim/ir/error.h"
#include "tools/flags/words.h"
#include "tools/print.h"
#include "traces/files/file.h"
#include "traces/files/format.h"
#include "traces/files/replacement.h"

namespace bubblescope::tools {

namespace {

bool ends_like(const std::string& path, const std::vector<std::string>& endings) {
  std::string name = to_lower(path);
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return std::any_of(endings.begin(), endings.end(),
                     [&](const std::string& ending) { return name.ends_with(ending); });
}

/// A file name with the ending of another format is a mistake, as is a kind of picture that no
/// format draws.
void expect_ending(const traces::TimelineFormat& format, const std::string& path) {
  if (format.endings.empty() || ends_like(path, format.endings)) return;
  bool foreign = ends_like(path, {".jpg", ".jpeg", ".gif"});
  if (foreign && format.endings.size() > 1)
    throw Error(fmt::format("--{}: cannot write {}; the endings are {}", format.name, path,
                            fmt::join(format.endings, ", ")));
  for (const traces::TimelineFormat& other : Registry<traces::TimelineFormat>::instance().all())
    foreign = foreign || ends_like(path, other.endings);
  if (foreign)
    throw Error(fmt::format("--{}: {} has the ending of another format; end it in {}", format.name,
                            path, fmt::join(format.endings, " or ")));
}

}  // namespace

void expect_folder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (path != "-" && !folder.empty() && !std::filesystem::exists(folder))
    throw traces::make_create_error(path, ENOENT);
}

namespace {

/// Returns the same text for every spelling of a path.
std::string place_of(const std::string& path) {
  if (path == "-" || path == "/dev/stdout") return "-";
  std::error_code ignored;
  const std::filesystem::path place = std::filesystem::weakly_canonical(path, ignored);
  return ignored ? path : place.string();
}

}  // namespace

bool writes_files(const ExportOptions& exports) {
  return std::any_of(exports.begin(), exports.end(),
                     [](const auto& file) { return file.second.has_value(); });
}

void check_export_paths(const ExportOptions& exports, bool stdout_is_taken, Steps steps) {
  std::map<std::string, std::string> format_of_path;
  if (stdout_is_taken) format_of_path["-"] = "format";
  for (const auto& [name, path] : exports) {
    if (!path) continue;
    if (path->empty()) throw Error("--" + name + " has an empty file name");
    expect_folder(*path);
    if (const traces::TimelineFormat* format =
            Registry<traces::TimelineFormat>::instance().find(name)) {
      expect_ending(*format, *path);
      if (*path == "-" && steps == Steps::kSeveral && !format->stream)
        throw Error(fmt::format(
            "--{0} holds one step, and several cannot all go to stdout; give --{0} a file name",
            name));
    }
    const auto [taken, is_new] = format_of_path.emplace(place_of(*path), name);
    if (!is_new)
      throw Error(fmt::format("--{} and --{} both write {}; give each its own file", taken->second,
                              name, *path));
  }
}

void expect_inputs_kept(const ExportOptions& exports, const std::vector<std::string>& inputs) {
  std::set<std::string> kept;
  for (const std::string& input : inputs)
    if (input != "-") kept.insert(place_of(input));
  for (const auto& [name, path] : exports)
    if (path && kept.contains(place_of(*path)))
      throw Error(
          fmt::format("--{} would overwrite {}, which is read; give it another name", name, *path));
}

void write_and_report(const std::string& path, const std::string& content,
                      const std::string& remark) {
  traces::write_file(path, content);
  if (path != "-") print_message("wrote {}{}\n", path, remark);
}

namespace {

/// The bytes of each instruction's message; empty where bytes are unknown.
std::vector<Bytes> message_bytes(const TimedStep& step) {
  if (!step.timing.traffic || step.timing.traffic->flows.empty()) return {};
  std::vector<Bytes> bytes(step.program.size(), 0);
  for (const Flow& flow : step.timing.traffic->flows)
    bytes[flow.instruction] = flow.load / kLoadPerByte;
  return bytes;
}

/// Adds the name of a step: "out/a.json.gz" with "1f1b 4x8" gives "out/a-1f1b-4x8.json.gz".
std::string path_of_step(const std::string& path, const std::string& step) {
  const std::size_t folder_end = path.rfind('/') + 1;  // 0 without a folder
  const std::size_t ending = std::min(path.find('.', folder_end + 1), path.size());
  std::string word = step;
  for (char& letter : word)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 && letter != '.') letter = '-';
  return path.substr(0, ending) + "-" + word + path.substr(ending);
}

void write_streamed(const traces::TimelineFormat& format, const traces::ReportSet& report_set,
                    const std::string& path) {
  traces::write_file(path, [&](const traces::Sink& sink) { format.stream(report_set, sink); });
}

void write_one(const traces::TimelineFormat& format, const NamedStep& named,
               const std::string& path) {
  traces::write_file(path, format.write(named.step.record(), path));
}

void report_written(const std::string& path, bool has_noise) {
  if (path != "-") print_message("wrote {}{}\n", path, has_noise ? ", without the noise" : "");
}

void write_each(const traces::TimelineFormat& format, const std::vector<NamedStep>& steps,
                const std::string& path) {
  std::set<std::string> written;
  for (const NamedStep& named : steps) {
    std::string own = path_of_step(path, named.name);
    for (int copy = 2; !written.insert(own).second; ++copy)
      own = path_of_step(path, fmt::format("{}-{}", named.name, copy));
    write_one(format, named, own);
    report_written(own, named.step.report.noise.has_value());
  }
}

}  // namespace

void write_exports(const std::vector<NamedStep>& steps, const ExportOptions& exports,
                   const std::string& command, const MeasuredFindings& findings) {
  for (const auto& [name, path] : exports) {
    if (!path || steps.empty()) continue;
    const traces::TimelineFormat& format = *Registry<traces::TimelineFormat>::instance().find(name);
    if (!format.stream && steps.size() > 1) {
      write_each(format, steps, *path);
      continue;
    }
    if (format.stream) {
      traces::ReportSet report_set{
          command, {}, findings.workers, findings.causes, findings.changes};
      for (const NamedStep& named : steps)
        report_set.steps.push_back(
            {named.name, named.step.record(), message_bytes(named.step), named.predicted_by});
      write_streamed(format, report_set, *path);
    } else {
      write_one(format, steps[0], *path);
    }
    report_written(*path, steps[0].step.report.noise.has_value());
  }
}

void write_exports(const TimedStep& step, const ExportOptions& exports,
                   const std::string& command) {
  write_exports({{step.schedule->name, step}}, exports, command);
}

}  // namespace bubblescope::tools
