// A folder of checkpoints. Every process of a run writes its own part; then one of them writes the
// manifest, which makes the checkpoint whole:
//
//   step-4.json  step-4.part-0  step-4.part-1        whole
//   step-6.part-0                                    incomplete: there is no manifest
//
// Every file is written under a temporary name, synced and renamed. The checkpoint before the
// newest one stays, in case that the newest is damaged later.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/checkpoints/manifest.h"

namespace bubblescope::traces {

/// The manifests in a folder.
struct FoundCheckpoints {
  std::vector<CheckpointManifest> manifests;  ///< those that were read, the newest first
  std::vector<std::string> faults;            ///< "FILE was damaged: ..." for each of the others
};

class CheckpointFolder {
 public:
  /// Creates the folder if only its last name is missing. Throws Error.
  explicit CheckpointFolder(std::string path);

  const std::string& path() const { return path_; }

  /// Throws Error if the folder cannot be read.
  FoundCheckpoints find() const;

  /// Throws Error that names the file if it is missing, has another length or was damaged.
  std::string read_part(const CheckpointManifest& manifest, std::size_t part) const;

  /// Returns when the file is on disk. Throws Error.
  CheckpointPart write_part(std::int32_t step, std::size_t part, std::string_view bytes) const;

  /// Makes a checkpoint whole, and then removes all that are older than the one before it. All of
  /// its parts must have been written. Throws Error.
  void complete(const CheckpointManifest& manifest) const;

 private:
  std::string file(const std::string& name) const { return path_ + '/' + name; }
  void remove_older_than(std::int32_t newest) const;

  std::string path_;
};

}  // namespace bubblescope::traces
