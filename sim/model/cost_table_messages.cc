// Prices the messages of a cost table.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/ir/error.h"
#include "sim/model/cost_lists.h"
#include "sim/model/message_costs.h"
#include "sim/model/transfer_limit.h"

namespace bubblescope::inline sim {

namespace {

/// A bit takes 1 / bandwidth_gbps nanoseconds.
double bytes_nanos(const LinkSpeed& speed, Bytes bytes) {
  if (speed.points.empty()) return 0;
  return std::ceil(8.0 * static_cast<double>(bytes) / speed.bandwidth_gbps(bytes));
}

Nanos time_of_bytes(const LinkSpeed& speed, Bytes bytes) {
  const double time = bytes_nanos(speed, bytes);
  if (time > kMaxTransferNanos)
    throw Error("a message takes longer than 10 days; correct its bytes or its bandwidth");
  return static_cast<Nanos>(time);
}

struct MessageTime {
  Nanos latency = 0;
  Nanos bytes = 0;
};

/// The link of every pair of ranks.
class TransferTable {
 public:
  explicit TransferTable(const CostTable& table) : usual_{table.message.speed(), table.message} {
    for (const LinkEntry& link : table.links)
      own_.emplace(std::pair(link.from, link.to), Priced{link.transfer.speed(), link.transfer});
  }

  /// Prices a message of a stage: what its entry leaves out is that of the link.
  MessageTime price(const StageMessage& message, const MessageEntry& entry) const {
    const Priced& link = link_of(message);
    const Nanos latency = entry.latency.value_or(link.transfer.latency);
    return {latency, time_of_bytes(link.speed, count_bytes(message, entry))};
  }

  Bytes count_bytes(const StageMessage& message, const MessageEntry& entry) const {
    return entry.bytes.value_or(link_of(message).transfer.bytes);
  }

 private:
  struct Priced {
    LinkSpeed speed;
    TransferEntry transfer;
  };

  const Priced& link_of(const StageMessage& message) const {
    const auto own = own_.find({message.from, message.to});
    return own == own_.end() ? usual_ : own->second;
  }

  Priced usual_;
  std::map<std::pair<std::int32_t, std::int32_t>, Priced> own_;
};

/// Prices the messages of all micro-batches where stages say something about them.
void set_messages(CostModel& model, const CostTable& table, const Schedule& schedule) {
  if (!has_message_entries(table) || table.cluster) return;
  const TransferTable transfers(table);
  model.messages = make_message_tensor<MessageCost>(
      schedule, has_lists(table), [&](MessageCost& cost, const StageMessage& message) {
        const auto [latency, bytes] =
            transfers.price(message, message_entry(table, message.producer));
        raise_to(message.forward ? cost.forward : cost.backward, latency + bytes);
        raise_to(message.forward ? cost.forward_bytes : cost.backward_bytes, bytes);
      });
}

void set_links(CostModel& model, const CostTable& table, std::int32_t ranks) {
  if (table.links.empty()) return;
  model.message_between.assign(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks),
                               model.message);
  model.byte_time_between.assign(model.message_between.size(), model.byte_time);
  for (std::size_t at = 0; at < table.links.size(); ++at) {
    const LinkEntry& link = table.links[at];
    if (std::max(link.from, link.to) >= ranks)
      throw Error(
          fmt::format("{}: /links/{}: joins ranks {} and {}, but ranks are 0..{}; remove it",
                      table.file, at, link.from, link.to, ranks - 1));
    const auto pair = static_cast<std::size_t>(std::int64_t{link.from} * ranks + link.to);
    model.message_between[pair] = static_cast<Nanos>(link.transfer.nanos());
    model.byte_time_between[pair] = model.message_between[pair] - link.transfer.latency;
  }
}

}  // namespace

bool knows_message_bytes(const CostTable& table) {
  const auto on_link = [](const LinkEntry& link) { return link.transfer.bytes > 0; };
  const auto of_stage = [&](const StageEntry& entry) { return entry.message_bytes.has_value(); };
  return table.message.bytes > 0 || std::any_of(table.links.begin(), table.links.end(), on_link) ||
         std::any_of(table.stages.begin(), table.stages.end(), of_stage);
}

CostTensor<MessageSizes> find_message_sizes(const CostTable& table, const Schedule& schedule) {
  const TransferTable transfers(table);
  return make_message_tensor<MessageSizes>(
      schedule, has_lists(table), [&](MessageSizes& sizes, const StageMessage& message) {
        raise_to(message.forward ? sizes.forward : sizes.backward,
                 transfers.count_bytes(message, message_entry(table, message.producer)));
      });
}

double TransferEntry::nanos() const {
  return static_cast<double>(latency) + bytes_nanos(speed(), bytes);
}

LinkSpeed TransferEntry::speed() const { return {latency, bandwidths}; }

void set_message_times(CostModel& model, const CostTable& table, const Schedule& schedule) {
  model.message = static_cast<Nanos>(table.message.nanos());
  model.byte_time = model.message - table.message.latency;
  set_links(model, table, schedule.shape.ranks);
  set_messages(model, table, schedule);
}

}  // namespace bubblescope::inline sim
