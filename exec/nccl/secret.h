// The secret that all processes of one run have, and nobody else. It never goes over a connection:
// both ends of one show that they have it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "exec/nccl/keyed_hash.h"
#include "exec/runtime/blob.h"

namespace bubblescope::exec {

/// Numbers that nobody can guess. Throws Error where the system has none.
using Nonce = std::array<std::byte, 16>;
Nonce make_nonce();

class Secret {
 public:
  /// Throws Error for a text that can be guessed: one of fewer than 16 characters.
  explicit Secret(std::string text);

  /// A new one, of 256 bits.
  static Secret make();

  /// Shows that someone has it: for one purpose and one message.
  Digest sign(std::string_view purpose, const Blob& message) const;

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Where a launcher's variables say that the secret is.
struct SecretSource {
  std::string text;  ///< BUBBLESCOPE_SECRET
  std::string file;  ///< BUBBLESCOPE_SECRET_FILE

  bool is_empty() const { return text.empty() && file.empty(); }
};

/// Throws Error for a file that is not regular, not ours or that others may read, and where there
/// is neither text nor file.
Secret read_secret(const SecretSource& source);

/// The folder where processes of this user on this host leave each other secrets: XDG_RUNTIME_DIR
/// (given here; may be empty), or else one in /tmp, which is made. Throws Error where it is not
/// ours alone.
std::string find_secret_folder(const std::string& runtime_folder);

/// A secret in a file of mode 0600, for the other processes of this host: it is there as long as
/// this lives.
class SecretFile {
 public:
  /// Replaces what an earlier run has left. Throws Error.
  SecretFile(const std::string& folder, std::uint16_t port, const Secret& secret);
  ~SecretFile();
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

 private:
  std::string path_;
};

/// The name of such a file.
std::string secret_path(const std::string& folder, std::uint16_t port);

}  // namespace bubblescope::exec
