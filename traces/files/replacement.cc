// Temporary files are called .bubblescope-HOST-PID-N.tmp and lie in the folder of their target.
#include "traces/files/replacement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "sim/ir/digest.h"

namespace bubblescope::traces {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".tmp";
constexpr mode_t kRights = 07777;

/// Begins the names of this host's files. Several hosts may share a folder, and a process id does
/// not tell whether a process of another host lives.
std::string make_prefix() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format(".bubblescope-{}-", digest_text(digest(host.data())));
}

/// Removes a temporary file of ours that no process holds a lock on.
void remove_if_abandoned(const fs::path& path) {
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.number(), &status) != 0) return;
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) return;
  if (::flock(file.number(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
}

/// The process id in the name of a temporary file of this host; 0 for any other name.
pid_t process_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || !name.ends_with(kEnding)) return 0;
  name.remove_prefix(prefix.size());
  pid_t process = 0;
  for (const char digit : name.substr(0, name.find('-'))) {
    if (digit < '0' || digit > '9' || process > 100'000'000) return 0;
    process = 10 * process + (digit - '0');
  }
  return process;
}

/// Files of a living process stay: it may have created its file but not locked it yet.
void sweep(const fs::path& folder, std::string_view prefix) {
  std::error_code ended;
  fs::directory_iterator files(folder.empty() ? "." : folder, ended);
  for (; !ended && files != fs::directory_iterator(); files.increment(ended)) {
    const pid_t process = process_of(files->path().filename().string(), prefix);
    if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH)
      remove_if_abandoned(files->path());
  }
}

}  // namespace

Error make_create_error(const std::string& path, int error_number) {
  return Error(fmt::format("cannot create {}: {}{}", path, reason(error_number),
                           error_number == ENOENT ? "; make its folder first" : ""));
}

Error make_write_error(const std::string& path, int error_number) {
  return Error(Fault::kMachine, fmt::format("cannot write {}: {}", path, reason(error_number)));
}

void write_all(int descriptor, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(descriptor, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw make_write_error(path, errno);
    content.remove_prefix(static_cast<std::size_t>(count));
  }
}

fs::path resolve_links(const fs::path& path) {
  constexpr int kMaxLinks = 40;  // the system's own limit
  fs::path target = path;
  for (int link = 0; link < kMaxLinks; ++link) {
    std::error_code is_no_link;
    const fs::path next = fs::read_symlink(target, is_no_link);
    if (is_no_link) return target;
    target = target.parent_path() / next;  // an absolute path replaces everything before it
  }
  throw make_create_error(path.string(), ELOOP);
}

SignalDelay::SignalDelay() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

SignalDelay::~SignalDelay() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

Replacement::Replacement(fs::path target, std::optional<struct stat> replaced)
    : target_(std::move(target)), file_(create(replaced ? S_IRUSR | S_IWUSR : 0666)) {
  if (!replaced) return;
  struct stat made {};
  ::fstat(file_.number(), &made);
  const bool same = made.st_uid == replaced->st_uid && made.st_gid == replaced->st_gid;
  keeps_owner_ = same || ::fchown(file_.number(), replaced->st_uid, replaced->st_gid) == 0;
  ::fchmod(file_.number(), replaced->st_mode & kRights);  // after fchown, which clears bits of it
}

Replacement::~Replacement() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void Replacement::commit() {
  const bool sync_failed = ::fsync(file_.number()) != 0 && errno != EINVAL && errno != ENOTSUP;
  if (sync_failed) throw make_write_error(target_.string(), errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    throw make_write_error(target_.string(), errno);
  temporary_.clear();
  if (!file_.close()) throw make_write_error(target_.string(), errno);
}

int Replacement::create(mode_t mode) {
  const fs::path folder = target_.parent_path();
  const std::string prefix = make_prefix();
  sweep(folder, prefix);
  for (int attempt = 0;; ++attempt) {
    const auto temporary = folder / fmt::format("{}{}-{}{}", prefix, ::getpid(), attempt, kEnding);
    const int number = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (number < 0 && errno == EEXIST) continue;
    if (number < 0) throw make_create_error(target_.string(), errno);
    ::flock(number, LOCK_EX | LOCK_NB);  // without locks, the process id in the name suffices
    temporary_ = temporary;
    return number;
  }
}

}  // namespace bubblescope::traces
