// Runs the instructions of every rank on its buffers, from the first rank to the last.
#include "traces/schedules/deepspeed_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "traces/files/quote.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

enum class Code : std::uint8_t {
  kLoad,
  kForward,
  kBackward,
  kSendActivation,
  kReceiveActivation,
  kSendGradient,
  kReceiveGradient,
  kUpdate,  ///< RTG, RGD and OPT, which have no buffer
};

constexpr std::array<std::pair<std::string_view, Code>, 10> kWords{{
    {"LD", Code::kLoad},
    {"F", Code::kForward},
    {"B", Code::kBackward},
    {"SA", Code::kSendActivation},
    {"RA", Code::kReceiveActivation},
    {"SG", Code::kSendGradient},
    {"RG", Code::kReceiveGradient},
    {"RTG", Code::kUpdate},
    {"RGD", Code::kUpdate},
    {"OPT", Code::kUpdate},
}};

OpKind kind_of(Code code) {
  switch (code) {
    case Code::kBackward: return OpKind::kBackward;
    case Code::kSendActivation: return OpKind::kSendForward;
    case Code::kReceiveActivation: return OpKind::kRecvForward;
    case Code::kSendGradient: return OpKind::kSendBackward;
    case Code::kReceiveGradient: return OpKind::kRecvBackward;
    case Code::kForward:
    case Code::kLoad:
    case Code::kUpdate: break;  // the last two are not ops
  }
  return OpKind::kForward;
}

struct StreamInstruction {
  Code code = Code::kUpdate;
  std::int32_t buffer = 0;
  std::string_view text;
  std::size_t step = 0;  ///< counted from 1
};

struct Stream {
  std::string where;  ///< "s.txt:1"
  std::vector<StreamInstruction> instructions;
};

[[noreturn]] void refuse(const std::string& where, std::size_t step, std::string_view text,
                         const std::string& what) {
  throw Error(fmt::format("{}: step {}: {} {}", where, step, quote(text), what));
}

StreamInstruction parse_instruction(const std::string& where, std::string_view text,
                                    std::size_t step) {
  const std::string_view name = text.substr(0, text.find_first_of("0123456789"));
  const std::string_view digits = text.substr(name.size());
  const auto word = std::find_if(kWords.begin(), kWords.end(),
                                 [&](const auto& known) { return known.first == name; });
  if (word == kWords.end())
    refuse(where, step, text,
           "is not an instruction; they are LD, F, B, SA, RA, SG, RG, RTG, RGD, OPT");
  if (word->second == Code::kUpdate) {
    if (!digits.empty()) refuse(where, step, text, "has no buffer");
    return {Code::kUpdate, 0, text, step};
  }
  const auto buffer = parse_number<std::int32_t>(digits);
  if (!buffer) refuse(where, step, text, "needs its buffer's number, as in F0");
  return {word->second, *buffer, text, step};
}

/// One word per step; `-` is an empty one.
Stream parse_stream(std::string where, std::string_view line) {
  Stream stream{std::move(where), {}};
  for (std::size_t step = 1; !(line = strip(line)).empty(); ++step) {
    std::string_view word = line.substr(0, line.find_first_of(" \t"));
    line.remove_prefix(word.size());
    if (word == "-") continue;
    for (bool more = true; more;) {
      const std::size_t plus = word.find('+');
      stream.instructions.push_back(parse_instruction(stream.where, word.substr(0, plus), step));
      more = plus != word.npos;
      if (more) word.remove_prefix(plus + 1);
    }
  }
  return stream;
}

/// The content of a buffer.
struct Buffer {
  std::int32_t microbatch = 0;
  bool is_computed = false;  ///< its forward has run
  bool is_sent = false;      ///< its activation has left
  bool has_gradient = false;
  bool is_done = false;  ///< its backward has run
};

struct Message {
  std::int32_t microbatch = 0;
  StreamInstruction by;
};

/// The ops of a rank, and the order of its messages.
struct RankRun {
  RankOrder list;
  std::vector<std::int32_t> activations;  ///< sent
  std::vector<Message> gradients;         ///< sent
  std::vector<Message> awaited;           ///< gradients received
};

/// Runs the instructions of one rank.
class Engine {
 public:
  Engine(const Stream& stream, std::int32_t rank, std::int32_t ranks,
         const std::vector<std::int32_t>& arriving, bool trains)
      : stream_(stream), rank_(rank), ranks_(ranks), arriving_(arriving), trains_(trains) {}

  RankRun run() && {
    for (const StreamInstruction& each : stream_.instructions) run(each);
    return std::move(run_);
  }

 private:
  void run(const StreamInstruction& each) {
    switch (each.code) {
      case Code::kLoad: return load(each);
      case Code::kReceiveActivation: return receive(each);
      case Code::kForward: return compute_forward(each);
      case Code::kSendActivation: return send_activation(each);
      case Code::kReceiveGradient: return receive_gradient(each);
      case Code::kBackward: return compute_backward(each);
      case Code::kSendGradient: return send_gradient(each);
      case Code::kUpdate: return;
    }
  }

  /// The first rank loads inputs, the last one labels; with one rank both are loaded at once.
  void load(const StreamInstruction& each) {
    const std::int32_t loaded = loads_++;
    if (rank_ == 0) fill(each, loaded);
    if (rank_ + 1 == ranks_ && rank_ > 0) labels_[each.buffer] = loaded;
  }

  void receive(const StreamInstruction& each) {
    const auto at = static_cast<std::size_t>(receives_);
    // Messages that no rank sends are found where both ends are compared.
    const std::int32_t microbatch = at < arriving_.size() ? arriving_[at] : receives_;
    ++receives_;
    fill(each, microbatch);
    add(each, microbatch);
  }

  void compute_forward(const StreamInstruction& each) {
    Buffer& buffer = expect_filled(each);
    const auto label = labels_.find(each.buffer);
    if (label != labels_.end() && label->second != buffer.microbatch)
      refuse(each, fmt::format("has the input of micro-batch {} and the labels of micro-batch {}",
                               buffer.microbatch, label->second));
    if (buffer.is_computed)
      refuse(each, fmt::format("runs the forward of micro-batch {} again", buffer.microbatch));
    buffer.is_computed = true;
    add(each, buffer.microbatch);
  }

  void send_activation(const StreamInstruction& each) {
    Buffer& buffer = expect_filled(each);
    if (!buffer.is_computed) refuse(each, "sends what no forward has computed");
    buffer.is_sent = true;
    run_.activations.push_back(buffer.microbatch);
    add(each, buffer.microbatch);
  }

  void receive_gradient(const StreamInstruction& each) {
    Buffer& buffer = expect_filled(each);
    buffer.has_gradient = true;
    run_.awaited.push_back({buffer.microbatch, each});
    add(each, buffer.microbatch);
  }

  void compute_backward(const StreamInstruction& each) {
    Buffer& buffer = expect_filled(each);
    if (!buffer.is_computed)
      refuse(each, fmt::format("runs before the forward of micro-batch {}", buffer.microbatch));
    if (rank_ + 1 < ranks_ && !buffer.has_gradient)
      refuse(each, fmt::format("has no gradient of micro-batch {}: RG has to come before",
                               buffer.microbatch));
    if (buffer.is_done)
      refuse(each, fmt::format("runs the backward of micro-batch {} again", buffer.microbatch));
    buffer.is_done = true;
    add(each, buffer.microbatch);
  }

  void send_gradient(const StreamInstruction& each) {
    const Buffer& buffer = expect_filled(each);
    if (!buffer.is_done) refuse(each, "sends what no backward has computed");
    run_.gradients.push_back({buffer.microbatch, each});
    add(each, buffer.microbatch);
  }

  /// Puts a micro-batch into a buffer that nothing needs any more.
  void fill(const StreamInstruction& each, std::int32_t microbatch) {
    const auto held = buffers_.find(each.buffer);
    if (held != buffers_.end()) {
      const Buffer& old = held->second;
      const bool is_free =
          trains_ ? old.is_done : old.is_computed && (old.is_sent || rank_ + 1 == ranks_);
      if (!is_free)
        refuse(each,
               fmt::format("overwrites micro-batch {}, whose {} is still to come", old.microbatch,
                           trains_ ? "backward" : "forward, or its message,"));
    }
    buffers_[each.buffer] = {microbatch};
  }

  Buffer& expect_filled(const StreamInstruction& each) {
    const auto held = buffers_.find(each.buffer);
    if (held == buffers_.end())
      refuse(each, fmt::format("finds nothing in buffer {}: {} has to come before", each.buffer,
                               rank_ == 0 ? "LD" : "RA"));
    return held->second;
  }

  void add(const StreamInstruction& each, std::int32_t microbatch) {
    if (microbatch > kMaxMicrobatch) refuse(each, "is one micro-batch too many");
    Op op = forward(rank_, microbatch);
    op.kind = kind_of(each.code);
    run_.list.push_back(op);
  }

  [[noreturn]] void refuse(const StreamInstruction& each, const std::string& what) const {
    traces::refuse(stream_.where, each.step, each.text, what);
  }

  const Stream& stream_;
  std::int32_t rank_;
  std::int32_t ranks_;
  const std::vector<std::int32_t>& arriving_;
  bool trains_;
  std::map<std::int32_t, Buffer> buffers_;
  std::map<std::int32_t, std::int32_t> labels_;  ///< [buffer]
  std::int32_t loads_ = 0;
  std::int32_t receives_ = 0;
  RankRun run_;
};

/// The engine adds whatever gradient arrives to the micro-batch of the buffer.
void expect_own_gradients(const RankRun& run, const RankRun& next, const Stream& stream) {
  const std::size_t count = std::min(run.awaited.size(), next.gradients.size());
  for (std::size_t at = 0; at < count; ++at) {
    const Message& awaited = run.awaited[at];
    const std::int32_t sent = next.gradients[at].microbatch;
    if (awaited.microbatch == sent) continue;
    refuse(stream.where, awaited.by.step, awaited.by.text,
           fmt::format("receives the gradient of micro-batch {}, which the next rank sends there, "
                       "for micro-batch {}; receive gradients in the order in which they are sent",
                       sent, awaited.microbatch));
  }
}

}  // namespace

std::vector<RankOrder> read_deepspeed_streams(std::string_view text, const std::string& file) {
  std::vector<Stream> streams;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), row.size() + 1));
    if (!strip(row).empty()) streams.push_back(parse_stream(fmt::format("{}:{}", file, line), row));
  }
  const bool trains = std::any_of(streams.begin(), streams.end(), [](const Stream& stream) {
    return std::any_of(stream.instructions.begin(), stream.instructions.end(),
                       [](const auto& each) { return each.code == Code::kBackward; });
  });
  std::vector<RankRun> runs;
  const std::vector<std::int32_t> none;
  for (std::size_t rank = 0; rank < streams.size(); ++rank)
    runs.push_back(Engine(streams[rank], static_cast<std::int32_t>(rank),
                          static_cast<std::int32_t>(streams.size()),
                          rank == 0 ? none : runs.back().activations, trains)
                       .run());
  for (std::size_t rank = 0; rank + 1 < runs.size(); ++rank)
    expect_own_gradients(runs[rank], runs[rank + 1], streams[rank]);
  std::vector<RankOrder> lists;
  for (RankRun& run : runs) lists.push_back(std::move(run.list));
  return lists;
}

}  // namespace bubblescope::traces
