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

#include "sim/ir/counted.h"
#include "sim/ir/digest.h"
#include "sim/ir/error.h"
#include "traces/files/descriptor.h"
#include "traces/files/file.h"

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

/// Returns nullopt for files that are not ours, such as step-04.json.
std::optional<NamedFile> parse_name(const std::string& name) {
  std::string_view rest = name;
  if (!take(rest, "step-")) return std::nullopt;
  const std::optional<std::int32_t> step = take_number(rest);
  if (!step || *step == 0) return std::nullopt;
  if (name == manifest_name(*step)) return NamedFile{*step, true, name};
  if (!take(rest, ".part-")) return std::nullopt;
  const std::optional<std::int32_t> part = take_number(rest);
  if (!part || name != part_name(*step, static_cast<std::size_t>(*part))) return std::nullopt;
  return NamedFile{*step, false, name};
}

/// Returns all files of checkpoints, the newest first.
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

/// A file that was created or renamed is on disk only when its folder is. A folder that this user
/// may not read cannot be synced.
void sync_folder(const std::string& path) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open() && errno == EACCES) return;
  const bool failed =
      !folder.is_open() || (::fsync(folder.number()) != 0 && errno != EINVAL && errno != ENOTSUP);
  if (failed) throw Error(Fault::kMachine, fmt::format("cannot write {}: {}", path, reason(errno)));
}

/// Returns the folder that holds this one.
std::string parent_of(const std::string& path) {
  fs::path folder(path);
  if (!folder.has_filename()) folder = folder.parent_path();  // "saved/"
  return folder.has_parent_path() ? folder.parent_path().string() : ".";
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::string path) : path_(std::move(path)) {
  std::error_code failed;
  if (fs::create_directory(path_, failed)) sync_folder(parent_of(path_));
  std::error_code unknown;
  if (fs::is_directory(path_, unknown)) return;
  throw Error(fmt::format(
      "cannot create the folder {}: {}", path_,
      fs::exists(path_, unknown) ? "it is a file; give another name" : failed.message()));
}

FoundCheckpoints CheckpointFolder::find() const {
  FoundCheckpoints found;
  for (const NamedFile& named : list(path_)) {
    if (!named.is_manifest) continue;
    try {
      CheckpointManifest manifest = read_manifest(read_file(file(named.name)), file(named.name));
      if (manifest.step != named.step)
        throw Error(fmt::format("{} was renamed: it is of step {}; rename it back, or remove it",
                                file(named.name), manifest.step));
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
    throw Error(fmt::format("{} has {} instead of {}", name, counted(bytes.size(), "byte"),
                            expected.bytes));
  if (digest_text(digest(bytes)) != expected.checksum)
    throw Error(name + " was damaged: its content does not match its checksum");
  return bytes;
}

CheckpointPart CheckpointFolder::write_part(std::int32_t step, std::size_t part,
                                            std::string_view bytes) const {
  write_file(file(part_name(step, part)), bytes);
  sync_folder(path_);
  return {static_cast<Bytes>(bytes.size()), digest_text(digest(bytes))};
}

void CheckpointFolder::complete(const CheckpointManifest& manifest) const {
  write_file(file(manifest_name(manifest.step)), write_manifest(manifest));
  sync_folder(path_);
  remove_older_than(manifest.step);
}

/// Keeps `newest` and the checkpoint before it, whose manifest must be readable. Manifests are
/// listed before their parts and removed first, so that no manifest is ever without its parts.
void CheckpointFolder::remove_older_than(std::int32_t newest) const {
  const std::vector<CheckpointManifest> known = find().manifests;
  const auto before =
      std::find_if(known.begin(), known.end(),
                   [newest](const CheckpointManifest& manifest) { return manifest.step < newest; });
  std::error_code ignored;  // a file that cannot be removed now is tried again later
  for (const NamedFile& named : list(path_)) {
    const bool is_before = before != known.end() && named.step == before->step;
    if (named.step < newest && !is_before) fs::remove(file(named.name), ignored);
  }
}

}  // namespace bubblescope::traces
