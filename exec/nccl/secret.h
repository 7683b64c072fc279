// The secret of a run: a text that only its processes know. It is never sent over the connections
// that it protects. Each end proves that it has the secret by signing the nonces of both ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "exec/nccl/keyed_hash.h"
#include "exec/runtime/blob.h"

namespace bubblescope::exec {

/// Unpredictable bytes. Throws Error if the system has no random source.
using Nonce = std::array<std::byte, 16>;
Nonce make_nonce();

class Secret {
 public:
  /// Throws Error for a text of fewer than 16 characters, which might be guessed.
  explicit Secret(std::string text);

  /// Returns a new secret of 256 random bits.
  static Secret make();

  /// Returns a proof of possession, for one purpose and one message.
  Digest sign(std::string_view purpose, const Blob& message) const;

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// The variables from which the secret is read.
struct SecretSource {
  std::string text;  ///< BUBBLESCOPE_SECRET
  std::string file;  ///< BUBBLESCOPE_SECRET_FILE

  bool is_empty() const { return text.empty() && file.empty(); }
};

/// Throws Error if neither is set, or if the file is not regular, belongs to another user or is
/// readable by others.
Secret read_secret(const SecretSource& source);

/// The folder for secret files of this user on this host: XDG_RUNTIME_DIR (the argument, if it is
/// not empty), or else a folder in /tmp, which is made. Throws Error if others have access to it.
std::string find_secret_folder(const std::string& runtime_folder);

/// A file of mode 0600 that gives the secret to the other processes of this host. The destructor
/// removes it.
class SecretFile {
 public:
  /// Replaces the file of an earlier run. Throws Error.
  SecretFile(const std::string& folder, std::uint16_t port, const Secret& secret);
  ~SecretFile();
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

 private:
  std::string path_;
};

/// Returns the path of the secret file for a port.
std::string secret_path(const std::string& folder, std::uint16_t port);

}  // namespace bubblescope::exec
