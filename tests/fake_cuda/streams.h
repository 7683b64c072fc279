// Streams, events and captures, as the calls of the runtime share them.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "tests/fake_cuda/engine.h"
#include "tests/fake_cuda/registry.h"

namespace bubblescope::fake_cuda {

struct Event;

/// One node of a graph; the others are meant by their place in it.
struct GraphNode {
  Task task;
  std::int32_t device = 0;
  std::vector<std::size_t> after;
  Event* records = nullptr;  ///< at every launch
};
using Graph = std::vector<GraphNode>;

/// The nodes behind which what comes next stands.
using Front = std::set<std::size_t>;

struct Stream;

struct Capture {
  Graph graph;
  const Stream* origin = nullptr;
  std::vector<Stream*> members;
  bool is_over = false;
};

struct GreenContext {
  std::int32_t device = 0;
  unsigned int multiprocessors = 0;
};

/// No two streams have the same.
std::int64_t next_stream_number();

struct Stream {
  std::int32_t device = 0;
  const GreenContext* context = nullptr;  ///< null: the device's own
  std::vector<Ticket> after = {};         ///< what the next task waits for
  std::deque<Ticket> standing = {};
  std::shared_ptr<Capture> capture = {};
  Front front = {};
  std::int64_t number = next_stream_number();
};

struct Event {
  std::int32_t device = 0;
  bool is_timed = false;
  bool was_recorded = false;
  Ticket ticket = {};
  std::shared_ptr<Capture> capture = {};  ///< in which it was recorded last, but as external
  Front front = {};
};

Registry<Stream>& streams();
Registry<Event>& events();

/// Also the default one of the current device. Refuses one of a green context that is gone.
Stream& stream_of(cudaStream_t stream, const char* call);

/// Puts a task on a stream, or into the graph that is captured from it.
void put(Stream& stream, Task task, Event* records = nullptr);

/// Blocks until a stream has ended.
void await_stream(Stream& stream, const char* call);

/// After an error in it, a capture gives no graph.
cudaError_t spoil(Stream& stream, cudaError_t error);

}  // namespace bubblescope::fake_cuda
