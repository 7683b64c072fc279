// Reads whole files within the limits of traces/files/input_limit.h; decompresses what gzip has
// packed.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "sim/ir/error.h"
#include "traces/files/descriptor.h"
#include "traces/files/file.h"
#include "traces/files/gzip.h"
#include "traces/files/input_limit.h"

namespace bubblescope::traces {

namespace {

constexpr int kWriterWaitMillis = 5'000;
constexpr int kWriterPollMillis = 20;

Error cannot_read(const std::string& path, const std::string& why) {
  return Error(fmt::format("cannot read {}: {}", path, why));
}

/// An open input with its size limit.
struct Input {
  int descriptor;
  std::string name;
  std::size_t size;  ///< as the system reports it; 0 where unknown
  std::size_t max_size;
};

/// Reads some bytes and returns their count, 0 at the end; waits where none are available.
std::size_t read_some(const Input& input, char* begin, std::size_t room) {
  for (;;) {
    const ssize_t count = ::read(input.descriptor, begin, room);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EAGAIN) {
      pollfd wanted{input.descriptor, POLLIN, 0};
      ::poll(&wanted, 1, -1);
    } else if (errno != EINTR) {
      throw cannot_read(input.name, reason(errno));
    }
  }
}

/// Asks for large pages where a text of this size is about to be written: touching a gigabyte in
/// pages of 4 KiB takes as long as parsing a third of it.
void prefer_large_pages([[maybe_unused]] std::string& content) {
#ifdef MADV_HUGEPAGE
  constexpr std::size_t kPage = std::size_t{2} << 20;
  void* begin = content.data();
  std::size_t room = content.capacity();
  if (room >= 8 * kPage && std::align(kPage, kPage, begin, room) != nullptr)
    ::madvise(begin, room / kPage * kPage, MADV_HUGEPAGE);
#endif
}

std::string read_all(const Input& input, std::string content = {}) {
  if (input.size > input.max_size) throw Error(describe_too_large(input.name, input.max_size));
  content.reserve(input.size);
  prefer_large_pages(content);
  std::array<char, 1 << 16> chunk;
  while (const std::size_t count = read_some(input, chunk.data(), chunk.size())) {
    const std::string_view piece(chunk.data(), count);
    if (content.size() + count > input.max_size)
      throw Error(describe_too_large(input.name, input.max_size));
    content += piece;
    if (input.size == 0 && piece.find('\0') != piece.npos && !is_gzip(content)) {
      expect_no_utf16(content, input.name);
      throw Error(input.name + " has nul bytes, which no text has; give a text file");
    }
  }
  return content;
}

/// The first byte of a pipe, or nothing once its writer is there: without a writing process, the
/// read would wait for ever.
std::string first_byte(int descriptor, const std::string& path) {
  for (int waited = 0; waited < kWriterWaitMillis; waited += kWriterPollMillis) {
    char first = 0;
    const ssize_t count = ::read(descriptor, &first, 1);
    if (count > 0) return {first};
    if (count < 0) return {};  // no data yet, or a fault that the next read reports
    pollfd wanted{descriptor, POLLIN, 0};
    if (::poll(&wanted, 1, kWriterPollMillis) > 0 && (wanted.revents & POLLHUP) != 0) return {};
  }
  throw cannot_read(path, "it is a pipe, and no process writes to it");
}

/// Returns the status of a file; refuses directories and devices.
struct stat status_of(const Descriptor& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) throw cannot_read(path, reason(errno));
  if (S_ISDIR(status.st_mode)) throw cannot_read(path, reason(EISDIR));
  const bool is_device = S_ISBLK(status.st_mode) || S_ISCHR(status.st_mode);
  if (is_device && ::isatty(file.number()) == 0)
    throw cannot_read(path, "it is a device; give a file, or - for the standard input");
  return status;
}

std::string read_plain(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) throw cannot_read(path, reason(errno));
  const struct stat status = status_of(file, path);
  const bool is_sized = S_ISREG(status.st_mode) && status.st_size > 0;
  if (!is_sized) {
    std::string begin = S_ISFIFO(status.st_mode) ? first_byte(file.number(), path) : "";
    return read_all({file.number(), path, 0, max_streamed()}, std::move(begin));
  }
  return read_all({file.number(), path, static_cast<std::size_t>(status.st_size),
                   static_cast<std::size_t>(input_limit().size)});
}

}  // namespace

void expect_no_utf16(std::string_view begin, const std::string& name) {
  if (begin.starts_with("\xFF\xFE") || begin.starts_with("\xFE\xFF"))
    throw Error(name +
                " is UTF-16, as PowerShell writes it; convert it to UTF-8: iconv -f UTF-16 -t "
                "UTF-8");
}

std::string read_file(const std::string& path) {
  const bool is_stream = path == "-";
  const std::string name = is_stream ? "the standard input" : path;
  std::string content =
      is_stream ? read_all({STDIN_FILENO, name, 0, max_streamed()}) : read_plain(path);
  if (!path.ends_with(".gz") && !is_gzip(content)) return content;
  try {
    return gunzip(content);
  } catch (const Error& error) {
    throw Error(error.fault(), fmt::format("{} {}", name, error.what()));
  }
}

std::string name_input(const std::string& path) { return path == "-" ? "stdin" : path; }

}  // namespace bubblescope::traces
