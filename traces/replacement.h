// A file that takes another's place in one go, so that no reader ever sees half of it.
#pragma once

#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "sim/ir/error.h"
#include "traces/descriptor.h"

namespace bubblescope {

/// The path is wrong (usage); later faults are the machine's.
Error cannot_create(const std::string& path, int error_number);
Error cannot_write(const std::string& path, int error_number);

/// Writes all of it. Throws Error, for which `path` names the file.
void write_all(int descriptor, std::string_view content, const std::string& path);

/// Where a path leads through symbolic links, also where nothing is there yet. Throws Error for
/// links in a circle.
std::filesystem::path behind_links(const std::filesystem::path& path);

/// While it lives, Ctrl-C and the like wait: they would leave half a file behind.
class SignalDelay {
 public:
  SignalDelay();
  ~SignalDelay();
  SignalDelay(const SignalDelay&) = delete;
  SignalDelay& operator=(const SignalDelay&) = delete;

 private:
  sigset_t before_;
};

/// A new file beside its target, which takes the target's place with its rights and owner, or
/// vanishes. It is locked while it is written: one that is not is left of a killed process, and the
/// next Replacement in its folder removes it.
class Replacement {
 public:
  /// `replaced`: the status of the target where it exists. Throws Error.
  Replacement(std::filesystem::path target, std::optional<struct stat> replaced);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  /// False where the target belongs to somebody whose files this process cannot make.
  bool keeps_owner() const { return keeps_owner_; }
  void write(std::string_view content) { write_all(file_.number(), content, target_.string()); }
  /// Gives the content to the disk, then the place of the target. Throws Error.
  void commit();

 private:
  int create(mode_t mode);

  SignalDelay delay_;
  std::filesystem::path target_;
  std::filesystem::path temporary_;  ///< empty once there is nothing to remove
  Descriptor file_;
  bool keeps_owner_ = true;
};

}  // namespace bubblescope
