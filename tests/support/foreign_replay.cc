// Two small parsers and one event loop.
#include "tests/support/foreign_replay.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace bubblescope::tests {

namespace {

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

std::size_t label_number(const std::string& label) {
  if (label.size() < 2 || label[0] != 'l') fail("no label: " + label);
  return std::stoul(label.substr(1));
}

std::size_t to_cpu(std::istringstream& words) {
  std::string word;
  std::size_t cpu = 0;
  if (!(words >> word >> cpu) || word != "cpu") fail("no cpu");
  return cpu;
}

/// Parses the part after "l3: ": calc 1000 cpu 0, send 1b to 1 tag 7 cpu 1, recv 1b from 0 tag 7
/// cpu 1.
ForeignJob read_goal_job(std::istringstream& words, std::int64_t latency) {
  using Kind = ForeignJob::Kind;
  ForeignJob job;
  std::string kind;
  words >> kind;
  if (kind == "calc") {
    if (!(words >> job.duration)) fail("calc without a time");
  } else {
    std::string size, direction, tag;
    if (!(words >> size >> direction >> job.peer >> tag >> job.tag) || !size.ends_with("b") ||
        tag != "tag" || direction != (kind == "send" ? "to" : "from"))
      fail("no message: " + kind);
    job.kind = kind == "send" ? Kind::kSend : Kind::kReceive;
    job.duration = latency;
  }
  job.cpu = static_cast<int>(to_cpu(words));
  return job;
}

/// A cursor over protobuf's wire format.
class Wire {
 public:
  explicit Wire(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      if (rest_.empty() || shift > 63) fail("broken varint");
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string_view bytes() {
    const std::uint64_t size = varint();
    if (size > rest_.size()) fail("cut short");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

 private:
  std::string_view rest_;
};

/// The fields of one message: integers and byte strings by field number, in order.
struct Message {
  std::map<std::uint64_t, std::vector<std::uint64_t>> integers;
  std::map<std::uint64_t, std::vector<std::string_view>> strings;
};

Message read_message(std::string_view bytes) {
  Message message;
  Wire wire(bytes);
  while (!wire.at_end()) {
    const std::uint64_t key = wire.varint();
    if ((key & 7) == 0)
      message.integers[key >> 3].push_back(wire.varint());
    else if ((key & 7) == 2)
      message.strings[key >> 3].push_back(wire.bytes());
    else
      fail("a wire type that no field here has");
  }
  return message;
}

ForeignJob read_chakra_node(std::string_view bytes, std::uint64_t expected_id) {
  using Kind = ForeignJob::Kind;
  Message node = read_message(bytes);
  const std::uint64_t id = node.integers[1].empty() ? 0 : node.integers[1][0];
  if (id != expected_id) fail("nodes are not numbered in order");
  std::map<std::string, std::uint64_t> attributes;
  for (const std::string_view text : node.strings[10]) {
    Message attribute = read_message(text);
    for (const auto& [field, values] : attribute.integers)
      attributes[std::string(attribute.strings[1].at(0))] = values.at(0);
  }
  ForeignJob job;
  for (const std::string_view packed : node.strings[5])
    for (Wire wire(packed); !wire.at_end();) job.waits_for.push_back(wire.varint());
  switch (node.integers[3].at(0)) {
    case 4: job.duration = static_cast<std::int64_t>(attributes.at("duration_ns")); return job;
    case 5:
      job.kind = Kind::kSend;
      job.peer = attributes.at("comm_dst");
      job.duration = static_cast<std::int64_t>(attributes.at("latency_ns"));
      break;
    case 6:
      job.kind = Kind::kReceive;
      job.peer = attributes.at("comm_src");
      break;
    default: fail("another type of node");
  }
  job.tag = attributes.at("comm_tag");
  return job;
}

class Loop {
 public:
  explicit Loop(const ForeignTrace& trace) : trace_(trace), state_(trace.size()) {
    for (std::size_t rank = 0; rank < trace.size(); ++rank) {
      state_[rank].resize(trace[rank].size());
      for (std::size_t job = 0; job < trace[rank].size(); ++job) {
        state_[rank][job].missing = trace[rank][job].waits_for.size();
        for (const std::size_t awaited : trace[rank][job].waits_for)
          state_[rank].at(awaited).next.push_back(job);
        if (trace[rank][job].kind == ForeignJob::Kind::kReceive)
          receive_[{trace[rank][job].peer, rank, trace[rank][job].tag}] = job;
        if (trace[rank][job].waits_for.empty()) push(0, What::kReady, rank, job);
      }
    }
  }

  std::int64_t run() && {
    std::int64_t last = 0;
    std::size_t ended = 0;
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      const auto [time, order, what, rank, job] = event;
      if (what == What::kReady) start(time, rank, job);
      if (what == What::kArrived) arrive(time, rank, job);
      if (what == What::kEnded) {
        end(time, rank, job);
        last = std::max(last, time);
        ++ended;
      }
    }
    for (const auto& jobs : trace_) ended -= jobs.size();
    if (ended != 0) fail("jobs wait for ever");
    return last;
  }

 private:
  enum class What { kReady, kArrived, kEnded };
  using Event = std::tuple<std::int64_t, std::size_t, What, std::size_t, std::size_t>;
  struct State {
    std::size_t missing = 0;
    std::vector<std::size_t> next;
    bool ready = false;
    bool arrived = false;
  };

  void push(std::int64_t time, What what, std::size_t rank, std::size_t job) {
    events_.push({time, order_++, what, rank, job});
  }

  void start(std::int64_t time, std::size_t rank, std::size_t at) {
    const ForeignJob& job = trace_[rank][at];
    state_[rank][at].ready = true;
    if (job.kind == ForeignJob::Kind::kSend) {
      const std::size_t receive = receive_.at({rank, job.peer, job.tag});
      push(time + job.duration, What::kArrived, job.peer, receive);
      push(time, What::kEnded, rank, at);
    } else if (job.kind == ForeignJob::Kind::kReceive) {
      if (state_[rank][at].arrived) push(time, What::kEnded, rank, at);
    } else {
      std::deque<std::size_t>& queue = queues_[{rank, job.cpu}];
      queue.push_back(at);
      if (queue.size() == 1) push(time + job.duration, What::kEnded, rank, at);
    }
  }

  void arrive(std::int64_t time, std::size_t rank, std::size_t at) {
    state_[rank][at].arrived = true;
    if (state_[rank][at].ready) push(time, What::kEnded, rank, at);
  }

  void end(std::int64_t time, std::size_t rank, std::size_t at) {
    const ForeignJob& job = trace_[rank][at];
    if (job.kind == ForeignJob::Kind::kCalculate) {
      std::deque<std::size_t>& queue = queues_[{rank, job.cpu}];
      queue.pop_front();
      if (!queue.empty())
        push(time + trace_[rank][queue.front()].duration, What::kEnded, rank, queue.front());
    }
    for (const std::size_t next : state_[rank][at].next)
      if (--state_[rank][next].missing == 0) push(time, What::kReady, rank, next);
  }

  const ForeignTrace& trace_;
  std::vector<std::vector<State>> state_;
  std::map<std::tuple<std::size_t, std::size_t, std::uint64_t>, std::size_t> receive_;
  std::map<std::pair<std::size_t, int>, std::deque<std::size_t>> queues_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::size_t order_ = 0;
};

}  // namespace

ForeignTrace read_goal(const std::string& text) {
  ForeignTrace trace;
  std::istringstream lines(text);
  std::vector<ForeignJob>* rank = nullptr;
  std::int64_t latency = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t parameter = line.find(" -L ");
    if (line.starts_with("//") && parameter != line.npos)
      latency = std::stoll(line.substr(parameter + 4));
    if (line.empty() || line.starts_with("//")) continue;
    std::istringstream words(line);
    std::string first, second;
    words >> first;
    if (first == "num_ranks") {
      std::size_t count = 0;
      words >> count;
      trace.resize(count);
    } else if (first == "rank") {
      std::size_t number = 0;
      words >> number >> second;
      if (second != "{") fail("no brace: " + line);
      rank = &trace.at(number);
    } else if (first == "}") {
      rank = nullptr;
    } else if (rank && first.ends_with(":")) {
      if (label_number(first.substr(0, first.size() - 1)) != rank->size()) fail("label: " + line);
      rank->push_back(read_goal_job(words, latency));
    } else {
      std::string awaited;
      words >> second >> awaited;
      if (!rank || second != "requires") fail("no line of GOAL: " + line);
      rank->at(label_number(first)).waits_for.push_back(label_number(awaited));
    }
  }
  return trace;
}

ForeignTrace read_chakra(const std::vector<std::string>& files) {
  ForeignTrace trace;
  for (const std::string& file : files) {
    Wire wire(file);
    Message metadata = read_message(wire.bytes());
    if (metadata.strings[1].at(0) != "0.0.4") fail("another schema");
    std::vector<ForeignJob>& jobs = trace.emplace_back();
    while (!wire.at_end()) jobs.push_back(read_chakra_node(wire.bytes(), jobs.size()));
  }
  return trace;
}

std::int64_t replay_makespan(const ForeignTrace& trace) { return Loop(trace).run(); }

}  // namespace bubblescope::tests
