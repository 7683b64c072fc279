// Writes checkpoints so that a process may be killed between any two system calls.
#include "traces/checkpoints/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "sim/ir/digest.h"
#include "sim/ir/error.h"
#include "traces/files/descriptor.h"
#include "traces/files/format.h"

namespace bubblescope::traces {

namespace {

namespace fs = std::filesystem;

/// A file of a checkpoint, by its name.
struct NamedFile {
  std::int32_t step = 0;
  bool is_manifest = false;
  std::string name;
};

std::optional<std::int32_t> take_number(std::string_view& text) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// Empty for files that are not ours.
std::optional<NamedFile> parse_name(const std::string& name) {
  std::string_view rest = name;
  if (!take(rest, "step-")) return std::nullopt;
  const std::optional<std::int32_t> step = take_number(rest);
  if (!step || *step == 0) return std::nullopt;
  if (rest == ".json") return NamedFile{*step, true, name};
  if (!take(rest, ".part-") || !take_number(rest) || !rest.empty()) return std::nullopt;
  return NamedFile{*step, false, name};
}

/// All files of checkpoints, the newest first.
std::vector<NamedFile> list(const std::string& folder) {
  std::vector<NamedFile> files;
  std::error_code failed;
  fs::directory_iterator entries(folder, failed);
  for (; !failed && entries != fs::directory_iterator(); entries.increment(failed))
    if (auto file = parse_name(entries->path().filename().string()))
      files.push_back(std::move(*file));
  if (failed) throw Error(fmt::format("cannot read {}: {}", folder, failed.message()));
  std::sort(files.begin(), files.end(), [](const NamedFile& left, const NamedFile& right) {
    return std::pair(-left.step, left.name) < std::pair(-right.step, right.name);
  });
  return files;
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::string path) : path_(std::move(path)) {
  std::error_code failed;
  fs::create_directory(path_, failed);
  std::error_code unknown;
  if (fs::is_directory(path_, unknown)) return;
  throw Error(fmt::format("cannot create the folder {}: {}", path_,
                          failed ? failed.message() : "it is a file; give another name"));
}

FoundCheckpoints CheckpointFolder::find() const {
  FoundCheckpoints found;
  for (const NamedFile& named : list(path_)) {
    if (!named.is_manifest) continue;
    try {
      CheckpointManifest manifest = read_manifest(read_file(file(named.name)), file(named.name));
      if (manifest.step != named.step)
        throw Error(
            fmt::format("{} was renamed: it is of step {}", file(named.name), manifest.step));
      found.manifests.push_back(std::move(manifest));
    } catch (const Error& error) {
      found.faults.push_back(error.what());
    }
  }
  return found;
}

std::string CheckpointFolder::read_part(const CheckpointManifest& manifest,
                                        std::size_t part) const {
  const std::string name = file(part_name(manifest.step, part));
  if (part >= manifest.parts.size())
    throw Error(fmt::format("{} is not in its checkpoint, which has {} parts", name,
                            manifest.parts.size()));
  const CheckpointPart& expected = manifest.parts[part];
  std::string bytes = read_file(name);
  if (static_cast<Bytes>(bytes.size()) != expected.bytes)
    throw Error(fmt::format("{} has {} bytes instead of {}", name, bytes.size(), expected.bytes));
  if (digest_text(digest(bytes)) != expected.checksum)
    throw Error(name + " was damaged: its content does not match its checksum");
  return bytes;
}

CheckpointPart CheckpointFolder::write_part(std::int32_t step, std::size_t part,
                                            std::string_view bytes) const {
  write_file(file(part_name(step, part)), bytes);
  sync();
  return {static_cast<Bytes>(bytes.size()), digest_text(digest(bytes))};
}

void CheckpointFolder::complete(const CheckpointManifest& manifest) const {
  write_file(file(manifest_name(manifest.step)), write_manifest(manifest));
  sync();
  remove_older_than(manifest.step);
}

/// A rename is on disk only when its folder is.
void CheckpointFolder::sync() const {
  const Descriptor folder(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool failed =
      !folder.is_open() || (::fsync(folder.number()) != 0 && errno != EINVAL && errno != ENOTSUP);
  if (failed)
    throw Error(Fault::kMachine, fmt::format("cannot write {}: {}", path_, reason(errno)));
}

/// Keeps `newest` and the checkpoint before it. Manifests are removed before their parts, so that
/// no manifest is ever without its parts; parts without a manifest were cut.
void CheckpointFolder::remove_older_than(std::int32_t newest) const {
  const std::vector<NamedFile> files = list(path_);
  std::vector<std::int32_t> kept;
  std::error_code ignored;  // what cannot be removed now is tried again after the next checkpoint
  for (const NamedFile& named : files) {
    if (!named.is_manifest) continue;
    if (named.step >= newest || kept.empty() || kept.back() >= newest)
      kept.push_back(named.step);
    else
      fs::remove(file(named.name), ignored);
  }
  for (const NamedFile& named : files)
    if (!named.is_manifest && std::find(kept.begin(), kept.end(), named.step) == kept.end())
      fs::remove(file(named.name), ignored);
}

}  // namespace bubblescope::traces
