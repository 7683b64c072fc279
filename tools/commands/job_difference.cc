// Matches causes and workers of two runs.
#include "tools/commands/job_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <string_view>

#include "sim/ir/units.h"
#include "traces/files/worker_map.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::tools {

namespace {

constexpr double kMinShown = 0.01;  ///< as a fraction of the step
constexpr double kMinSlowdown = traces::WorkerMap::kNoticedSlowdown - 1;
constexpr std::size_t kShown = 10;

bool is_single(std::string_view cause) {
  constexpr std::array<std::string_view, 3> kSingle{"drift", "launch", "slow_steps"};
  return std::find(kSingle.begin(), kSingle.end(), cause) != kSingle.end();
}

/// Adds a cause of B to the same one of A.
void match_cause(std::vector<CauseChange>& changes, const traces::SavedCause& cause) {
  const auto same = std::find_if(changes.begin(), changes.end(), [&](const CauseChange& change) {
    return !change.saves_b && change.cause == cause.cause &&
           (change.where == cause.where || is_single(cause.cause));
  });
  if (same == changes.end()) {
    changes.push_back({cause.cause, cause.where, {}, cause.saves});
    return;
  }
  same->where = cause.where;
  same->saves_b = cause.saves;
}

template <class Change>
void sort_by_change(std::vector<Change>& changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const Change& left, const Change& right) {
    return std::abs(left.change()) > std::abs(right.change());
  });
}

std::vector<CauseChange> compare_causes(const std::vector<traces::SavedCause>& a,
                                        const std::vector<traces::SavedCause>& b) {
  std::vector<CauseChange> changes;
  for (const traces::SavedCause& cause : a)
    changes.push_back({cause.cause, cause.where, cause.saves, {}});
  for (const traces::SavedCause& cause : b) match_cause(changes, cause);
  sort_by_change(changes);
  return changes;
}

std::vector<WorkerChange> compare_workers(const std::vector<WorkerSlowdown>& a,
                                          const std::vector<WorkerSlowdown>& b) {
  std::map<Worker, WorkerChange> by_worker;
  for (const WorkerSlowdown& one : a) by_worker[{one.replica, one.rank}].slowdown_a = one.slowdown;
  for (const WorkerSlowdown& one : b) by_worker[{one.replica, one.rank}].slowdown_b = one.slowdown;
  std::vector<WorkerChange> changes;
  for (auto& [worker, change] : by_worker) {
    change.worker = worker;
    changes.push_back(change);
  }
  sort_by_change(changes);
  return changes;
}

std::string write_line(std::string_view name, std::string_view a, std::string_view b,
                       std::string_view change) {
  return fmt::format("{:<44}{:>12}{:>12}{:>12}\n", name, a, b, change);
}

/// Returns a name such as "slow steps: in 3 of 8 steps".
std::string name_of(const CauseChange& change) {
  std::string name = change.cause;
  std::replace(name.begin(), name.end(), '_', ' ');
  return name + ": " + change.where;
}

traces::ChangeTable describe_causes(const std::vector<CauseChange>& causes,
                                    const traces::JobSummary& a, const traces::JobSummary& b) {
  const auto time = [](const std::optional<Nanos>& saves) {
    return saves ? traces::format_time(*saves) : "-";
  };
  traces::ChangeTable table{"causes, by what the mean step would save"};
  std::size_t left_out = 0;
  for (const CauseChange& change : causes) {
    const double share = std::max(fraction(change.saves_a.value_or(0), a.step.value_or(0)),
                                  fraction(change.saves_b.value_or(0), b.step.value_or(0)));
    if (share < kMinShown || table.rows.size() == kShown) {
      ++left_out;
      continue;
    }
    const Nanos by = change.change();
    const char* const sign = by < 0 ? "-" : by > 0 ? "+" : "";
    table.rows.push_back({name_of(change), time(change.saves_a), time(change.saves_b),
                          sign + traces::format_time(std::abs(by))});
  }
  if (table.rows.empty())
    table.remark = "causes: none that would save 1 % of the step in A or B";
  else if (left_out > 0)
    table.remark = fmt::format("({} smaller)", left_out);
  return table;
}

traces::ChangeTable describe_workers(const std::vector<WorkerChange>& workers) {
  bool has_replicas = false;
  for (const WorkerChange& change : workers)
    has_replicas = has_replicas || change.worker.replica != workers.front().worker.replica;
  const auto slowdown = [](const std::optional<double>& known) {
    return known ? fmt::format("{:.3f}", *known) : "-";
  };
  traces::ChangeTable table{"workers, by S"};
  std::size_t differ = 0;
  for (const WorkerChange& change : workers) {
    if (std::abs(change.change()) < kMinSlowdown || ++differ > kShown) continue;
    table.rows.push_back({traces::name_worker(change.worker, has_replicas),
                          slowdown(change.slowdown_a), slowdown(change.slowdown_b),
                          fmt::format("{:+.3f}", change.change())});
  }
  if (differ == 0)
    table.remark = "workers: none makes the step 2 % longer or shorter than before";
  else if (differ > kShown)
    table.remark = fmt::format("({} more)", differ - kShown);
  return table;
}

void write_pair(traces::JsonWriter& json, const char* name, const auto& a, const auto& b) {
  json.key(name).begin_object().member_or_null("a", a).member_or_null("b", b).end_object();
}

/// A list of objects, whose members `write` adds; null where the items are not known.
template <class Item, class Write>
void write_list(traces::JsonWriter& json, const char* name,
                const std::optional<std::vector<Item>>& items, const Write& write) {
  json.line(1).key(name);
  if (!items) {
    json.null();
    return;
  }
  json.begin_array();
  for (const Item& item : *items) {
    json.begin_object();
    write(item);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

JobDifference compare_jobs(const traces::JobSummary& a, const traces::JobSummary& b) {
  JobDifference difference;
  if (a.causes && b.causes) difference.causes = compare_causes(*a.causes, *b.causes);
  if (a.slowdown && b.slowdown) difference.workers = compare_workers(a.workers, b.workers);
  return difference;
}

std::vector<traces::ChangeTable> describe_job_difference(const JobDifference& difference,
                                                         const traces::JobSummary& a,
                                                         const traces::JobSummary& b) {
  const auto unknown = [](bool in_a, bool in_b) {
    return in_a && in_b ? "A and B" : in_a ? "A" : "B";
  };
  std::vector<traces::ChangeTable> tables;
  if (difference.causes)
    tables.push_back(describe_causes(*difference.causes, a, b));
  else
    tables.push_back(
        {"causes", {}, fmt::format("causes: not known of {}", unknown(!a.causes, !b.causes))});
  if (difference.workers)
    tables.push_back(describe_workers(*difference.workers));
  else
    tables.push_back(
        {"workers",
         {},
         fmt::format("workers: their S is not known of {}", unknown(!a.slowdown, !b.slowdown))});
  return tables;
}

std::string write_changes(const std::vector<traces::ChangeTable>& tables) {
  std::string text;
  for (const traces::ChangeTable& table : tables) {
    text += "\n";
    if (!table.rows.empty()) text += write_line(table.title, "A", "B", "change");
    for (const traces::ChangeRow& row : table.rows)
      text += write_line(row.what, row.a, row.b, row.change);
    if (!table.remark.empty()) text += table.remark + "\n";
  }
  return text;
}

void write_job_difference_json(traces::JsonWriter& json, const JobDifference& difference) {
  write_list(json, "causes", difference.causes, [&](const CauseChange& change) {
    json.member("cause", change.cause).member("where", change.where);
    write_pair(json, "saves_ns", change.saves_a, change.saves_b);
  });
  write_list(json, "workers", difference.workers, [&](const WorkerChange& change) {
    json.member("replica", change.worker.replica).member("rank", change.worker.rank);
    write_pair(json, "S", change.slowdown_a, change.slowdown_b);
  });
}

}  // namespace bubblescope::tools
