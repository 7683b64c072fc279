// Adds up the entries of stages.
#include "sim/model/join_stages.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/ir/range.h"

namespace bubblescope::inline sim {

namespace {

using Stages = std::vector<StageEntry>;
using OptionalSum = std::optional<std::int64_t>;

/// Adds what one more stage has. Throws Error where all have too much together.
void add(std::int64_t& sum, std::int64_t of_stage) {
  sum = add_in_range(sum, of_stage, "the stages of the cost file");
}

/// One group of stages, and the entry that they become.
class Group {
 public:
  Group(const Stages& stages, const std::vector<std::int32_t>& members) {
    for (const std::int32_t member : members)
      members_.push_back(&stages[static_cast<std::size_t>(member)]);
  }

  StageEntry join(std::vector<std::string>& left_out) const {
    if (members_.size() == 1) return *members_.front();
    StageEntry joined;
    for (const StageEntry* stage : members_) {
      add(joined.forward, stage->forward);
      add(joined.update.optimizer, stage->update.optimizer);
      add(joined.update.reduce_grad, stage->update.reduce_grad);
      add(joined.update.unshard, stage->update.unshard);
    }
    join_backwards(joined, left_out);
    if (any(&StageEntry::recompute))
      joined.recompute = sum([](const StageEntry& stage) -> OptionalSum {
        return stage.recompute.value_or(stage.forward);
      });
    join_shared(joined, left_out);
    join_activations(joined, left_out);
    joined.message_latency = members_.back()->message_latency;
    joined.message_bytes = members_.back()->message_bytes;
    return joined;
  }

 private:
  template <class Get>
  OptionalSum sum(const Get& get) const {
    std::int64_t total = 0;
    for (const StageEntry* stage : members_) {
      const OptionalSum value = get(*stage);
      if (!value) return {};
      add(total, *value);
    }
    return total;
  }

  OptionalSum sum(OptionalSum StageEntry::*member) const {
    return sum([member](const StageEntry& stage) { return stage.*member; });
  }

  template <class Member>
  bool any(Member StageEntry::*member) const {
    return std::any_of(members_.begin(), members_.end(),
                       [member](const StageEntry* stage) { return (stage->*member).has_value(); });
  }

  /// A backward is the sum of its halves where the table gives only those.
  void join_backwards(StageEntry& joined, std::vector<std::string>& left_out) const {
    joined.input_grad = sum(&StageEntry::input_grad);
    joined.weight_grad = sum(&StageEntry::weight_grad);
    if (any(&StageEntry::backward)) joined.backward = sum(full_backward);
    if (any(&StageEntry::input_grad) && !joined.input_grad)
      left_out.emplace_back("input and weight gradients next to whole backwards");
  }

  /// Joins what has a sum only if all stages have it.
  void join_shared(StageEntry& joined, std::vector<std::string>& left_out) const {
    const std::pair<OptionalSum StageEntry::*, const char*> all[] = {
        {&StageEntry::selective_recompute, "selective recomputation that only some stages have"},
        {&StageEntry::evict, "copies that only some stages have"},
        {&StageEntry::load, "copies that only some stages have"},
        {&StageEntry::evict_to_rank, "copies that only some stages have"},
        {&StageEntry::load_from_rank, "copies that only some stages have"},
        {&StageEntry::weight_bytes, "weight bytes that only some stages have"},
        {&StageEntry::selective_checkpoint, "checkpoints that only some stages have"}};
    for (const auto& [member, lost] : all) {
      joined.*member = sum(member);
      if (any(member) && !(joined.*member)) left_out.emplace_back(lost);
    }
    if (any(&StageEntry::checkpoint))
      joined.checkpoint =
          sum([](const StageEntry& stage) -> OptionalSum { return stage.checkpoint.value_or(0); });
  }

  void join_activations(StageEntry& joined, std::vector<std::string>& left_out) const {
    if (!any(&StageEntry::activation_bytes)) return;
    MemoryDelta bytes{0, 0, 0};
    for (const StageEntry* stage : members_) {
      if (!stage->activation_bytes) {
        left_out.emplace_back("activation bytes that only some stages have");
        return;
      }
      add(bytes.forward, stage->activation_bytes->forward);
      add(bytes.input_grad, stage->activation_bytes->input_grad);
    }
    bytes.weight_grad = -bytes.forward - bytes.input_grad;
    joined.activation_bytes = bytes;
  }

  std::vector<const StageEntry*> members_;
};

Stages join_all(const Stages& stages, const std::vector<std::vector<std::int32_t>>& groups,
                std::vector<std::string>& left_out) {
  Stages joined;
  for (const std::vector<std::int32_t>& group : groups)
    joined.push_back(Group(stages, group).join(left_out));
  return joined;
}

template <class Drop>
void drop(bool is_present, const char* what, std::vector<std::string>& left_out, const Drop& drop) {
  if (!is_present) return;
  left_out.emplace_back(what);
  drop();
}

/// Whether any stage of any replica has a value.
template <class Value>
bool any_has(const CostTable& table, std::optional<Value> StageEntry::*member) {
  const auto has = [member](const Stages& stages) {
    return std::any_of(stages.begin(), stages.end(),
                       [member](const StageEntry& stage) { return (stage.*member).has_value(); });
  };
  return has(table.stages) || std::any_of(table.replicas.begin(), table.replicas.end(), has);
}

/// Removes a value from all stages of all replicas.
template <class Value>
void remove(CostTable& table, std::optional<Value> StageEntry::*member) {
  for (StageEntry& stage : table.stages) (stage.*member).reset();
  for (Stages& stages : table.replicas)
    for (StageEntry& stage : stages) (stage.*member).reset();
}

/// Links, kinds and contention are those of single stages and of their ranks.
void drop_costs_without_sum(CostTable& table, std::vector<std::string>& left_out) {
  drop(!table.links.empty(), "links", left_out, [&] { table.links.clear(); });
  drop(!table.stage_kinds.empty(), "kinds of stages", left_out, [&] { table.stage_kinds.clear(); });
  const bool is_contended =
      any_has(table, &StageEntry::contended) || !table.contended_message.empty();
  drop(is_contended, "contention", left_out, [&] {
    table.contended_message.clear();
    remove(table, &StageEntry::contended);
  });
  table.ranks_per_device.reset();
  table.ends = Ends::kMoreLayers;  // joined ends also have layers of other stages
  drop(any_has(table, &StageEntry::overlapped_pair), "overlapped pairs", left_out,
       [&] { remove(table, &StageEntry::overlapped_pair); });
}

void drop_costs_that_files_lack(CostTable& table, std::vector<std::string>& left_out) {
  drop(has_lists(table), "differences between micro-batches, whose means stay", left_out,
       [&] { table.lists.clear(); });
  drop(!table.parts.stages.empty(),
       "the parts of ops, whose times stay, and the orders of overlapped pairs, which then take F "
       "+ B",
       left_out, [&] { table.parts = {}; });
  drop(table.cluster.has_value(), "the cluster", left_out, [&] {
    table.cluster.reset();
    if (!table.message.bandwidths.empty()) return;
    table.message.bytes = 0;  // only the cluster says how long they take
    remove(table, &StageEntry::message_bytes);
  });
}

/// The memory of each rank, where the table gives it for every stage.
std::vector<Bytes> join_static_bytes(const CostTable& table,
                                     const std::vector<std::vector<std::int32_t>>& groups,
                                     std::vector<std::string>& left_out) {
  std::vector<Bytes> joined;
  if (table.static_bytes.empty()) return joined;
  if (table.static_bytes.size() != table.stages.size()) {
    left_out.emplace_back("the memory of ranks, which are not as many as stages");
    return joined;
  }
  for (const std::vector<std::int32_t>& group : groups) {
    Bytes& bytes = joined.emplace_back(0);
    for (const std::int32_t stage : group)
      add(bytes, table.static_bytes[static_cast<std::size_t>(stage)]);
  }
  return joined;
}

}  // namespace

JoinedTable join_stages(const CostTable& table,
                        const std::vector<std::vector<std::int32_t>>& groups) {
  JoinedTable joined{table, {}};
  std::vector<std::string>& left_out = joined.left_out;
  drop_costs_that_files_lack(joined.table, left_out);
  if (groups.size() < table.stages.size()) drop_costs_without_sum(joined.table, left_out);
  joined.table.stages = join_all(joined.table.stages, groups, left_out);
  for (Stages& stages : joined.table.replicas) stages = join_all(stages, groups, left_out);
  joined.table.static_bytes = join_static_bytes(table, groups, left_out);
  joined.table.same_stages = false;
  std::vector<std::string> unique;
  for (std::string& what : left_out)
    if (std::find(unique.begin(), unique.end(), what) == unique.end())
      unique.push_back(std::move(what));
  left_out = std::move(unique);
  return joined;
}

}  // namespace bubblescope::inline sim
