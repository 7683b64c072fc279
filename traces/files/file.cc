// Writes whole files, compressed where the name ends in .gz.
#include "traces/files/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "sim/ir/error.h"
#include "traces/files/descriptor.h"
#include "traces/files/gzip.h"
#include "traces/files/replacement.h"

namespace bubblescope::traces {

namespace {

bool is_packed(const std::string& path) { return path.ends_with(".gz"); }

/// Writes a file's content to a sink.
using Producer = std::function<void(const Sink&)>;

/// Devices, pipes and files whose owner would change cannot be replaced, so they are written in
/// place.
void write_in_place(const std::string& path, const Producer& produce) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!file.is_open()) throw make_create_error(path, errno);
  produce([&](std::string_view piece) { write_all(file.number(), piece, path); });
  if (!file.close()) throw make_write_error(path, errno);
}

/// Overwriting must not change the owner or the permissions, nor ignore that a file is read-only.
void expect_writable(const std::filesystem::path& target, const struct stat& status) {
  constexpr mode_t kAnyWrite = S_IWUSR | S_IWGRP | S_IWOTH;
  if ((status.st_mode & kAnyWrite) == 0)
    throw Error(
        fmt::format("cannot create {}: it is read-only; make it writable, or give another "
                    "name",
                    target.string()));
  if (::faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) != 0)
    throw make_create_error(target.string(), errno);
}

void replace_file(const std::string& path, const Producer& produce) {
  const std::filesystem::path target = resolve_links(path);
  struct stat status {};
  const bool exists = ::stat(target.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) return write_in_place(path, produce);
  if (exists) expect_writable(target, status);
  Replacement replacement(target, exists ? std::optional(status) : std::nullopt);
  if (!replacement.keeps_owner()) return write_in_place(target, produce);
  produce([&](std::string_view piece) { replacement.write(piece); });
  replacement.commit();
}

void pack(const Producer& produce, const Sink& sink) {
  GzipWriter writer(sink);
  produce([&](std::string_view piece) { writer.write(piece); });
  writer.finish();
}

}  // namespace

void write_file(const std::string& path, const Producer& produce) {
  if (path == "-") {
    std::fflush(stdout);  // anything printed before must come first
    return produce(
        [](std::string_view piece) { write_all(STDOUT_FILENO, piece, "the standard output"); });
  }
  if (!is_packed(path)) return replace_file(path, produce);
  replace_file(path, [&](const Sink& sink) { pack(produce, sink); });
}

void write_file(const std::string& path, std::string_view content) {
  write_file(path, [content](const Sink& sink) { sink(content); });
}

}  // namespace bubblescope::traces
