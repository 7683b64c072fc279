// Replaces a file in one go, so that no reader ever sees half of it.
#pragma once

#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "sim/ir/error.h"
#include "traces/files/descriptor.h"

namespace bubblescope::traces {

/// Makes the Error for a path that is wrong (usage); later faults are the machine's.
Error make_create_error(const std::string& path, int error_number);
Error make_write_error(const std::string& path, int error_number);

/// Writes all of `content`. Throws Error that names `path`.
void write_all(int descriptor, std::string_view content, const std::string& path);

/// Follows symbolic links, even where their target does not exist yet. Throws Error for a cycle.
std::filesystem::path resolve_links(const std::filesystem::path& path);

/// Delays Ctrl-C and similar signals while it lives: they would leave half a file behind.
class SignalDelay {
 public:
  SignalDelay();
  ~SignalDelay();
  SignalDelay(const SignalDelay&) = delete;
  SignalDelay& operator=(const SignalDelay&) = delete;

 private:
  sigset_t before_;
};

/// A new file beside its target, which replaces the target, with its permissions and owner, or is
/// removed. It is locked while it is written: an unlocked one was left by a killed process, and the
/// next Replacement in its folder removes it.
class Replacement {
 public:
  /// `replaced`: the status of the target where it exists. Throws Error.
  Replacement(std::filesystem::path target, std::optional<struct stat> replaced);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  /// False where the target belongs to a user whose files this process cannot create.
  bool keeps_owner() const { return keeps_owner_; }
  void write(std::string_view content) { write_all(file_.number(), content, target_.string()); }
  /// Syncs the content to disk, then renames the file to its target. Throws Error.
  void commit();

 private:
  int create(mode_t mode);

  SignalDelay delay_;
  std::filesystem::path target_;
  std::filesystem::path temporary_;  ///< empty once there is nothing to remove
  Descriptor file_;
  bool keeps_owner_ = true;
};

}  // namespace bubblescope::traces
