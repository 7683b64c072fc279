// Stream captures and graphs.
#include <algorithm>
#include <memory>

#include "tests/fake_cuda/streams.h"

namespace bubblescope::tests::fake_cuda {

namespace {

struct Executable {
  Graph graph;
  std::vector<Ticket> last;  ///< end tasks of its last launch
};

Registry<Graph>& graphs() {
  static auto& made = *new Registry<Graph>("graphs");
  return made;
}

Registry<Executable>& executables() {
  static auto& made = *new Registry<Executable>("executable graphs");
  return made;
}

/// Whether every node leads to a node of the front.
bool is_joined(const Graph& graph, const Front& front) {
  std::vector<bool> leads(graph.size(), false);
  for (const std::size_t node : front) leads[node] = true;
  for (std::size_t node = graph.size(); node-- > 0;)
    for (const std::size_t before : graph[node].after)
      if (leads[node]) leads[before] = true;
  return std::all_of(leads.begin(), leads.end(), [](bool lead) { return lead; });
}

void leave(Capture& capture) {
  capture.is_over = true;
  for (Stream* const member : capture.members) {
    member->front.clear();
    member->capture = nullptr;
  }
}

/// Its events are recorded at the launch.
void launch(Executable& made, Stream& stream) {
  const std::vector<Ticket> before = [&] {
    std::vector<Ticket> all = stream.after;
    all.insert(all.end(), made.last.begin(), made.last.end());
    return all;
  }();
  std::vector<Ticket> tickets;
  for (const GraphNode& node : made.graph) {
    std::vector<Ticket> after;
    for (const std::size_t other : node.after) after.push_back(tickets[other]);
    tickets.push_back(start(node.task, node.device, node.after.empty() ? before : after));
    if (node.records == nullptr) continue;
    events().find(node.records, "cudaGraphLaunch");
    node.records->ticket = tickets.back();
    node.records->was_recorded = true;
  }
  stream.after.insert(stream.after.end(), tickets.begin(), tickets.end());
  put(stream, {"the end of a graph"});
  made.last = stream.after;
}

}  // namespace

}  // namespace bubblescope::tests::fake_cuda

using namespace bubblescope::tests::fake_cuda;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&] {
    // Other modes would forbid what the first launch of a kernel does.
    if (mode != cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
    if (stream == nullptr || stream == cudaStreamLegacy) return cudaErrorStreamCaptureUnsupported;
    Stream& origin = stream_of(stream, "cudaStreamBeginCapture");
    if (origin.capture != nullptr) return cudaErrorIllegalState;
    origin.capture = std::make_shared<Capture>();
    origin.capture->origin = &origin;
    origin.capture->members = {&origin};
    origin.front.clear();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&] {
    const Stream& on = stream_of(stream, "cudaStreamIsCapturing");
    *status = on.capture != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
  });
}

/// Ends the capture even if the call is made to fail.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  const cudaError_t status = call("cudaStreamEndCapture", [&] {
    Stream& on = stream_of(stream, "cudaStreamEndCapture");
    const std::shared_ptr<Capture> capture = on.capture;
    if (capture == nullptr) return cudaErrorIllegalState;
    if (capture->origin != &on) return spoil(on, cudaErrorStreamCaptureUnmatched);
    const bool is_spoiled = capture->is_over;
    const bool joined = is_joined(capture->graph, on.front);
    leave(*capture);
    if (is_spoiled) return cudaErrorStreamCaptureInvalidated;
    if (!joined) return cudaErrorStreamCaptureUnjoined;
    *graph = reinterpret_cast<cudaGraph_t>(graphs().add(std::move(capture->graph)));
    return cudaSuccess;
  });
  if (status != cudaSuccess && *graph != nullptr) {
    graphs().remove(*graph, "cudaStreamEndCapture");
    *graph = nullptr;
  }
  return status;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph,
                                 unsigned long long flags) {
  return call("cudaGraphInstantiate", [&] {
    if (flags != 0) return cudaErrorInvalidValue;
    *made = reinterpret_cast<cudaGraphExec_t>(
        executables().add({graphs().find(graph, "cudaGraphInstantiate"), {}}));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy", [&] {
    if (graph == nullptr) return cudaErrorInvalidValue;
    graphs().remove(graph, "cudaGraphDestroy");
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t made, cudaStream_t stream) {
  return call("cudaGraphUpload", [&] {
    executables().find(made, "cudaGraphUpload");
    put(stream_of(stream, "cudaGraphUpload"), {"the upload of a graph"});
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t made, cudaStream_t stream) {
  return call("cudaGraphLaunch", [&] {
    Stream& on = stream_of(stream, "cudaGraphLaunch");
    if (on.capture != nullptr) return spoil(on, cudaErrorStreamCaptureUnsupported);
    launch(executables().find(made, "cudaGraphLaunch"), on);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t made) {
  return call("cudaGraphExecDestroy", [&] {
    executables().remove(made, "cudaGraphExecDestroy");
    return cudaSuccess;
  });
}
