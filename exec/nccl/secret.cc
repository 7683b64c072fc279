// Reads and writes secrets.
#include "exec/nccl/secret.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "exec/nccl/tcp_socket.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

constexpr std::size_t kMinSecret = 16;
constexpr std::size_t kMaxSecret = 4096;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error("the backend nccl: the secret in " + path + " " + what);
}

/// Why others have access to a file or folder; empty if they have none.
std::string find_flaw(const struct stat& found) {
  if (found.st_uid != geteuid()) return "belongs to another user";
  if ((found.st_mode & 077) != 0) return "can be read by others";
  return "";
}

struct OpenFile {
  int descriptor = -1;

  ~OpenFile() {
    if (descriptor >= 0) close(descriptor);
  }
};

/// Reads a secret, without the newline at its end.
std::string read_file(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait.
  const OpenFile file{open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)};
  if (file.descriptor < 0) refuse(path, std::string("cannot be read: ") + std::strerror(errno));
  struct stat found {};
  if (fstat(file.descriptor, &found) != 0 || !S_ISREG(found.st_mode))
    refuse(path, "is not in a regular file");
  const std::string flaw = find_flaw(found);
  if (!flaw.empty()) refuse(path, flaw + "; create it again with mode 0600");
  std::array<char, kMaxSecret> text{};
  const ssize_t count = read(file.descriptor, text.data(), text.size());
  if (count < 0) refuse(path, std::string("cannot be read: ") + std::strerror(errno));
  std::string secret(text.data(), static_cast<std::size_t>(count));
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  return secret;
}

void write_file(const std::string& path, const std::string& text) {
  const OpenFile file{
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR)};
  if (file.descriptor < 0 || fchmod(file.descriptor, S_IRUSR | S_IWUSR) != 0 ||
      write(file.descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw Error(Fault::kMachine, "the backend nccl: cannot leave a secret in " + path + ": " +
                                     std::strerror(errno) + "; set BUBBLESCOPE_SECRET");
}

/// Why a folder is not ours alone; empty: it is.
std::string find_folder_flaw(const std::string& path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return "does not exist";
  if (!S_ISDIR(found.st_mode)) return "is not a directory";
  return find_flaw(found);
}

}  // namespace

Nonce make_nonce() {
  Nonce nonce{};
  if (getrandom(nonce.data(), nonce.size(), 0) == static_cast<ssize_t>(nonce.size())) return nonce;
  throw Error(Fault::kMachine, "the backend nccl: the system has no random numbers");
}

Secret::Secret(std::string text) : text_(std::move(text)) {
  if (text_.size() < kMinSecret)
    throw Error("the backend nccl: a secret of " + counted(text_.size(), "character") +
                " can be guessed; it needs " + std::to_string(kMinSecret) +
                ", as 'openssl rand -hex 32' makes them");
}

Secret Secret::make() {
  std::string text;
  for (const Nonce& nonce : {make_nonce(), make_nonce()})
    for (const std::byte byte : nonce)
      for (const int shift : {4, 0})
        text += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> shift & 15];
  return Secret(text);
}

Digest Secret::sign(std::string_view purpose, const Blob& message) const {
  BlobWriter writer;
  writer.write_text(std::string(purpose));
  writer.write_all(message);
  return hash_with_key(text_, writer.take());
}

Secret read_secret(const SecretSource& source) {
  if (!source.text.empty()) return Secret(source.text);
  if (!source.file.empty()) return Secret(read_file(source.file));
  throw Error(
      "the backend nccl: other hosts can reach the rendezvous address, so the processes need a "
      "secret; export BUBBLESCOPE_SECRET=$(openssl rand -hex 32) where srun or mpirun is called, "
      "which hand it round (torchrun: the same on every host), or set BUBBLESCOPE_SECRET_FILE to a "
      "file of mode 0600");
}

std::string find_secret_folder(const std::string& runtime_folder) {
  if (!runtime_folder.empty() && find_folder_flaw(runtime_folder).empty()) return runtime_folder;
  const std::string path = "/tmp/bubblescope-" + std::to_string(geteuid());
  mkdir(path.c_str(), S_IRWXU);  // where it is already connected, it is looked at
  const std::string flaw = find_folder_flaw(path);
  if (flaw.empty()) return path;
  throw Error(Fault::kMachine, "the backend nccl: the folder for secrets, " + path + ", " + flaw +
                                   "; remove it, or set BUBBLESCOPE_SECRET");
}

std::string secret_path(const std::string& folder, std::uint16_t port) {
  return folder + "/bubblescope-secret-" + std::to_string(port);
}

/// Writes a temporary file and renames it, so that other processes never read a part of it.
SecretFile::SecretFile(const std::string& folder, std::uint16_t port, const Secret& secret)
    : path_(secret_path(folder, port)) {
  const std::string part = path_ + "." + std::to_string(getpid());
  unlink(part.c_str());
  write_file(part, secret.text());
  if (rename(part.c_str(), path_.c_str()) == 0) return;
  const std::string why = std::strerror(errno);
  unlink(part.c_str());
  throw Error(Fault::kMachine, "the backend nccl: cannot leave a secret in " + path_ + ": " + why);
}

SecretFile::~SecretFile() { unlink(path_.c_str()); }

}  // namespace bubblescope::exec
