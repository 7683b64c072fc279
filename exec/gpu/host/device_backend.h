// Backends that enqueue work on devices: how one of them starts a job, and what it can time alone.
// exec/runtime/backend.h has what all backends share, such as their names.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exec/gpu/host/device_options.h"
#include "exec/gpu/host/job.h"
#include "exec/runtime/backend.h"
#include "exec/runtime/kernel_bench.h"
#include "exec/runtime/message_time.h"
#include "sim/ir/registry.h"

namespace bubblescope::exec {

/// An entry of the registry of these backends.
struct DeviceBackendDef {
  std::string name;  ///< that of its BackendDef, which has no `make`
  std::vector<std::string> aliases = {};
  /// Enqueues the work of a job; `request.work` is empty. Throws Error.
  std::function<Job(const JobRequest& job, BackendRequest request)> start;
  /// Measures messages of several sizes between this many ranks. May be empty. Throws Error.
  std::function<std::vector<MessageTime>(std::int32_t ranks, const DeviceOptions& device)>
      time_messages = {};
  /// The same for copies to host memory. Empty if activations are not offloaded to the host.
  std::function<std::vector<MessageTime>(std::int32_t ranks, const DeviceOptions& device)>
      time_host_copies = {};
  /// Opens a device, to time its kernels alone. May be empty. Throws Error.
  std::function<std::unique_ptr<KernelBench>()> open_bench = {};
};

using DeviceBackendRegistrar = Registrar<DeviceBackendDef>;

/// Finds a backend by name; null if its work runs on the host. Throws Error if there is none.
const DeviceBackendDef* find_device_backend(std::string_view name);

}  // namespace bubblescope::exec
