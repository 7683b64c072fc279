// Streams, events and captures, shared by the runtime calls.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "tests/fake_cuda/engine.h"
#include "tests/fake_cuda/registry.h"

namespace bubblescope::tests::fake_cuda {

struct Event;

/// A node of a graph; nodes refer to each other by index.
struct GraphNode {
  Task task;
  std::int32_t device = 0;
  std::vector<std::size_t> after;
  Event* records = nullptr;  ///< recorded at every launch
};
using Graph = std::vector<GraphNode>;

/// The nodes on which the next node of a stream depends.
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

/// Returns a unique stream number.
std::int64_t next_stream_number();

struct Stream {
  std::int32_t device = 0;
  const GreenContext* context = nullptr;  ///< null: the whole device
  std::vector<Ticket> after = {};         ///< tickets that the next task waits for
  std::deque<Ticket> queued = {};
  std::shared_ptr<Capture> capture = {};
  Front front = {};
  std::int64_t number = next_stream_number();
};

struct Event {
  std::int32_t device = 0;
  bool is_timed = false;
  bool was_recorded = false;
  Ticket ticket = {};
  std::shared_ptr<Capture> capture = {};  ///< of its last record, unless that was external
  Front front = {};
};

Registry<Stream>& streams();
Registry<Event>& events();

/// Finds a stream; null means the default stream of the current device. Refuses a stream whose
/// green context was destroyed.
Stream& stream_of(cudaStream_t stream, const char* call);

/// Puts a task on a stream, or into the graph if the stream is captured.
void put(Stream& stream, Task task, Event* records = nullptr);

/// Blocks until the stream is empty.
void await_stream(Stream& stream, const char* call);

/// Invalidates the capture, so that it gives no graph.
cudaError_t spoil(Stream& stream, cudaError_t error);

}  // namespace bubblescope::tests::fake_cuda
