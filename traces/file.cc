// Whole files in and out; packed where the name ends in .gz.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "sim/ir/error.h"
#include "traces/format.h"
#include "traces/gzip.h"
#include "traces/schedule_file.h"
#include "traces/timeline_file.h"

namespace bubblescope {

namespace {

std::string reason(int error_number) { return std::generic_category().message(error_number); }

Error cannot_read(const std::string& path, const std::string& why) {
  return Error(fmt::format("cannot read {}: {}", path, why));
}

/// The path is wrong (usage); later faults are the machine's.
Error cannot_create(const std::string& path, int error_number) {
  return Error(fmt::format("cannot create {}: {}{}", path, reason(error_number),
                           error_number == ENOENT ? "; make its folder first" : ""));
}

Error cannot_write(const std::string& path, int error_number) {
  return Error(Fault::kMachine, fmt::format("cannot write {}: {}", path, reason(error_number)));
}

bool is_packed(const std::string& path) { return path.ends_with(".gz"); }

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  /// False, with errno, where what was written could not be kept.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

std::string read_all(int descriptor, const std::string& path) {
  std::string content;
  std::array<char, 1 << 16> chunk;
  for (;;) {
    const ssize_t count = ::read(descriptor, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw cannot_read(path, reason(errno));
    if (count == 0) return content;
    content.append(chunk.data(), static_cast<std::size_t>(count));
  }
}

void write_all(int descriptor, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(descriptor, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw cannot_write(path, errno);
    content.remove_prefix(static_cast<std::size_t>(count));
  }
}

/// Gives a file's content to a sink.
using Producer = std::function<void(const Sink&)>;

/// Devices and pipes cannot be replaced; they are written where they are.
void write_in_place(const std::string& path, const Producer& produce) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.is_open()) throw cannot_create(path, errno);
  produce([&](std::string_view piece) { write_all(file.number(), piece, path); });
  if (!file.close()) throw cannot_write(path, errno);
}

/// While it lives, Ctrl-C and the like wait: they would leave half a file behind.
class SignalDelay {
 public:
  SignalDelay() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~SignalDelay() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalDelay(const SignalDelay&) = delete;
  SignalDelay& operator=(const SignalDelay&) = delete;

 private:
  sigset_t before_;
};

/// A new file beside its target, which takes the target's place or vanishes.
class Replacement {
 public:
  explicit Replacement(std::filesystem::path target)
      : target_(std::move(target)), file_(create()) {}
  ~Replacement() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void write(std::string_view content) { write_all(file_.number(), content, target_.string()); }

  void commit() {
    if (!file_.close()) throw cannot_write(target_.string(), errno);
    if (::rename(temporary_.c_str(), target_.c_str()) != 0)
      throw cannot_write(target_.string(), errno);
    temporary_.clear();
  }

 private:
  int create() {
    for (int attempt = 0;; ++attempt) {
      const auto temporary =
          target_.parent_path() / fmt::format(".bubblescope-{}-{}.tmp", ::getpid(), attempt);
      const int number = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (number < 0 && errno == EEXIST) continue;
      if (number < 0) throw cannot_create(target_.string(), errno);
      temporary_ = temporary;
      return number;
    }
  }

  SignalDelay delay_;
  std::filesystem::path target_;
  std::filesystem::path temporary_;  ///< empty once there is nothing to remove
  Descriptor file_;
};

void replace_file(const std::string& path, const Producer& produce) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) return write_in_place(path, produce);
  // A link stays a link: the file behind it is replaced.
  Replacement replacement(exists ? std::filesystem::canonical(path) : std::filesystem::path(path));
  produce([&](std::string_view piece) { replacement.write(piece); });
  replacement.commit();
}

void pack(const Producer& produce, const Sink& sink) {
  GzipWriter writer(sink);
  produce([&](std::string_view piece) { writer.write(piece); });
  writer.finish();
}

}  // namespace

std::string read_file(const std::string& path) {
  if (path == "-") return read_all(STDIN_FILENO, "the standard input");
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) throw cannot_read(path, reason(errno));
  std::string content = read_all(file.number(), path);
  if (!is_packed(path)) return content;
  try {
    return gunzip(content);
  } catch (const Error& error) {
    throw Error(error.fault(), fmt::format("{} {}", path, error.what()));
  }
}

void write_file(const std::string& path, const Producer& produce) {
  if (path == "-") {
    std::fflush(stdout);  // what was printed before comes first
    return produce(
        [](std::string_view piece) { write_all(STDOUT_FILENO, piece, "the standard output"); });
  }
  if (!is_packed(path)) return replace_file(path, produce);
  replace_file(path, [&](const Sink& sink) { pack(produce, sink); });
}

void write_file(const std::string& path, std::string_view content) {
  write_file(path, [content](const Sink& sink) { sink(content); });
}

ScheduleFile read_schedule_file(const std::string& path) {
  const std::string text = read_file(path);
  const std::string file = path == "-" ? "stdin" : path;
  if (is_timeline(text)) return {parse_timeline(text, file).schedule, true};
  std::string readable;
  for (const ScheduleFormat& format : Registry<ScheduleFormat>::instance().all()) {
    if (format.recognize && format.recognize(text)) return {format.read(text, file), false};
    if (format.read) readable += (readable.empty() ? "" : ", ") + format.name;
  }
  throw Error(fmt::format("{} is in no format that holds schedules; those are {}", file, readable));
}

Schedule read_schedule(const std::string& path) { return read_schedule_file(path).schedule; }

}  // namespace bubblescope
