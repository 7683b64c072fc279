// Reads launchers' environments, and resumes from and merges journals.
#include "tools/plan/plan_shards.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <span>
#include <system_error>
#include <utility>

#include "exec/runtime/launchers.h"
#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "tools/flags/words.h"
#include "tools/print.h"
#include "traces/files/descriptor.h"
#include "traces/files/replacement.h"

namespace bubblescope::tools {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxShards = 1'000'000;

std::optional<std::size_t> read_variable(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return {};
  const auto number = parse_number<std::size_t>(text);
  if (number && *number <= kMaxShards) return number;
  throw Error(
      fmt::format("{}={} is not a process number; unset it, or give --shard K/N", name, text));
}

/// The shard of a process, if both variables are set. Job arrays may begin at any index and have a
/// stride.
std::optional<SweepShard> read_shard(const char* rank, const char* count, std::size_t first = 0,
                                     std::size_t step = 1) {
  const auto process = read_variable(rank);
  const auto processes = read_variable(count);
  if (!process || !processes) return {};
  if (*process >= first && step > 0 && (*process - first) / step < *processes)
    return SweepShard{(*process - first) / step, *processes};
  throw Error(fmt::format("{}={} does not go with {}={}; unset them, or give --shard K/N", rank,
                          *process, count, *processes));
}

/// Reads a journal. Throws Error for one of another sweep.
traces::PlanJournal read_journal(const std::string& path, const traces::SweepQuestion& question,
                                 const std::vector<Configuration>& configurations) {
  traces::PlanJournal journal = traces::read_plan_journal(path, configurations);
  if (journal.size == 0 || journal.question == question) return journal;
  if (journal.question.arguments != question.arguments)
    throw Error(fmt::format("{} is of another plan: 'plan {}'; give another file, or these flags",
                            path, fmt::join(journal.question.arguments, " ")));
  throw Error(path +
              " is of this plan, but a file that it reads has changed since, or the program has; "
              "give another file, or remove it");
}

/// Opens a journal to append to. It is locked while it is open, so that no other process cuts off
/// what this one appends.
traces::Descriptor lock_journal(const std::string& path) {
  constexpr int kMode = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY;
  traces::Descriptor file(::open(path.c_str(), kMode, 0666));
  if (!file.is_open()) throw Error(fmt::format("cannot write {}: {}", path, traces::reason(errno)));
  // Some file systems have no locks; there, the user alone keeps plans apart.
  if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(path + " is in use by another plan; give each shard a file of its own, or wait");
  return file;
}

/// Evaluates what this process's journal lacks of its shard. Returns what it then has.
std::map<std::size_t, Outcome> fill_journal(int file, const SweepFiles& files,
                                            const std::vector<Configuration>& configurations,
                                            const MakeEvaluate& make_evaluate,
                                            SweepOptions options) {
  auto [question, known, size] = read_journal(files.journal, files.question, configurations);
  // A line without an end was cut off when its process was killed.
  if (::ftruncate(file, static_cast<off_t>(size)) != 0)
    throw traces::make_write_error(files.journal, errno);
  if (size == 0) traces::write_all(file, traces::write_question(files.question), files.journal);
  const SweepShard shard = files.shard.value_or(SweepShard{});
  std::vector<std::size_t> missing;
  std::vector<Configuration> to_evaluate;
  for (std::size_t at = shard.index; at < configurations.size(); at += shard.count) {
    if (known.contains(at)) continue;
    missing.push_back(at);
    to_evaluate.push_back(configurations[at]);
  }
  if (shard.index > 0) options.progress = {};  // one bar is enough
  options.record = [&](std::size_t begin, std::span<const Outcome> outcomes) {
    std::string lines;
    for (const Outcome& outcome : outcomes)
      lines += traces::write_outcome(missing[begin++], outcome);
    traces::write_all(file, lines, files.journal);
  };
  std::vector<Outcome> outcomes = sweep(to_evaluate, make_evaluate, options);
  for (std::size_t at = 0; at < missing.size(); ++at) known[missing[at]] = std::move(outcomes[at]);
  return std::move(known);
}

/// Every process of a launched sweep that finds all results tries this at its end; the one that
/// succeeds in renaming the first journal shows the plan.
bool claim_plan(const std::string& first) {
  std::error_code fault;
  fs::rename(first, first + ".merged", fault);
  if (fault && fault != std::errc::no_such_file_or_directory)
    throw Error(Fault::kMachine,
                fmt::format("cannot rename {}: {}; its shards are kept, run the plan again", first,
                            fault.message()));
  return !fault;
}

/// Removes the journals of a plan that was claimed and shown.
void remove_journals(const std::vector<std::string>& journals) {
  const std::string claimed = journals.front() + ".merged";
  std::error_code ignored;
  // If the plan cannot be written, its journals must remain so that it can be printed again.
  if (std::fflush(stdout) != 0) {
    fs::rename(claimed, journals.front(), ignored);
    throw Error(Fault::kMachine, "the plan cannot be written; its shards are kept, run it again");
  }
  fs::remove(claimed, ignored);
  for (std::size_t at = 1; at < journals.size(); ++at) fs::remove(journals[at], ignored);
}

}  // namespace

SweepShard parse_shard(const std::string& text) {
  const std::vector<std::string> numbers = split(text, '/');
  const auto index = parse_number<std::size_t>(numbers.front());
  const auto count = parse_number<std::size_t>(numbers.back());
  if (numbers.size() != 2 || !index || !count || *index < 1 || *index > *count ||
      *count > kMaxShards)
    throw Error("'" + text + "' is not a shard; write 1/4 to 4/4 for four shards");
  return {*index - 1, *count};
}

std::optional<SweepShard> find_launched_shard() {
  std::optional<SweepShard> process;
  for (const exec::Launcher& launcher : {exec::kMpiruns[0], exec::kMpiruns[1], exec::kSrun})
    if (!process) process = read_shard(launcher.rank, launcher.count);
  const auto task = read_shard("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT",
                               read_variable("SLURM_ARRAY_TASK_MIN").value_or(0),
                               read_variable("SLURM_ARRAY_TASK_STEP").value_or(1));
  const SweepShard inner = process.value_or(SweepShard{});
  const SweepShard outer = task.value_or(SweepShard{});
  const SweepShard shard{outer.index * inner.count + inner.index, outer.count * inner.count};
  return shard.count > 1 ? std::optional(shard) : std::nullopt;
}

SweepFiles find_journals(SweepFiles files, const std::vector<std::string>& arguments) {
  if (!files.shard && files.parts.empty()) {
    files.shard = find_launched_shard();
    files.launched = files.shard.has_value();
  }
  const SweepShard shard = files.shard.value_or(SweepShard{});
  if (shard.count == 1 && !files.any()) return files;
  files.question = traces::make_question(arguments);
  const std::string begin =
      files.journal.empty() ? "plan-" + files.question.fingerprint : files.journal;
  const auto path_of = [&](std::size_t index) {
    return fmt::format("{}.{}-of-{}", begin, index + 1, shard.count);
  };
  if (files.launched || !files.any()) files.journal = path_of(shard.index);
  for (std::size_t index = 0; files.launched && index < shard.count; ++index)
    files.parts.push_back(path_of(index));
  return files;
}

int run_sweep(const SweepFiles& files, const std::vector<Configuration>& configurations,
              const MakeEvaluate& make_evaluate, SweepOptions options, const ShowPlan& show) {
  if (!files.any()) return show(sweep(configurations, make_evaluate, options));
  std::optional<traces::Descriptor> own;  // locked before it is read, until the plan is shown
  std::map<std::size_t, Outcome> known;
  const bool evaluates = !files.journal.empty();
  if (evaluates) {
    own.emplace(lock_journal(files.journal));
    known = fill_journal(own->number(), files, configurations, make_evaluate, std::move(options));
  }
  // Those of other processes are read without their locks: they only grow, and a line that is half
  // written is ignored.
  for (const std::string& part : files.parts) {
    traces::PlanJournal journal = read_journal(part, files.question, configurations);
    if (journal.size == 0 && !evaluates) throw traces::make_empty_error(part);
    known.merge(journal.outcomes);
  }
  const std::size_t missing = configurations.size() - known.size();
  if (missing > 0 && !evaluates)
    throw Error(
        fmt::format("the files lack {} of {} results; give those of all shards, and run "
                    "shards that did not end again: they resume",
                    missing, configurations.size()));
  if (missing > 0 || (files.launched && !claim_plan(files.parts.front()))) {
    print_message("bubblescope: shard {}/{} is in {}; {}\n", files.shard->index + 1,
                  files.shard->count, files.journal,
                  files.launched
                      ? "the last one to finish prints the plan"
                      : "'bubblescope plan --merge' and the files of all shards print the plan");
    return 0;
  }
  std::vector<Outcome> outcomes;
  for (auto& [at, outcome] : known) outcomes.push_back(std::move(outcome));
  const int status = show(std::move(outcomes));
  if (files.launched) remove_journals(files.parts);
  return status;
}

}  // namespace bubblescope::tools
