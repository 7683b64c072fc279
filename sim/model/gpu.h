// Devices and the links between them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/range.h"
#include "sim/ir/registry.h"
#include "sim/ir/units.h"
#include "sim/model/measured_gemms.h"

namespace bubblescope::inline sim {

/// A message of n bytes takes latency + n / bandwidth, one way.
struct Link {
  Nanos latency = 0;
  double bytes_per_second = 1;

  Nanos time(double bytes) const {
    return latency + round_nanos(std::floor(bytes / bytes_per_second * 1e9), "a message");
  }
  bool operator==(const Link&) const = default;
};

/// How fast the kernels of a device generation are in a training step, where the power limit, not
/// the best measured GEMM, sets the rate.
struct KernelRates {
  /// GEMMs that follow each other, in FLOPs per second; 0: 95 % of Gpu::reachable_flops.
  double sustained_flops = 0;
  double half_size = 50;  ///< a side n of a GEMM reaches n / (n + half_size) of that
  double fp8_gain = 0;    ///< rate of 8-bit GEMMs over 16-bit ones; 0: the device has none
  /// Flash attention of head size 128 on a full device: fractions of Gpu::peak_flops.
  double attention_forward = 0.6;
  double attention_backward = 0.45;
  double multiprocessors = 132;
  /// The part of the memory traffic of grouped GEMMs that their compute does not hide. Fitted to
  /// SimuMax's grouped GEMMs: 1 on B200 (108 GEMMs, median error 2 %), 0 on A100 (12 GEMMs, 4 %); 1
  /// for unmeasured generations.
  double grouped_traffic = 1;
  /// GEMMs of attention whose heads are not a multiple of 8 numbers, where scores are saved:
  /// fraction of Gpu::peak_flops. From steps of models that differ in their heads alone
  /// (docs/accuracy_steps.md, Constants); generations without any are taken for Hopper.
  double unaligned_share = 0.13;
  /// Rate of the links in a node that all-gathers and reduce-scatters reach, over that of a
  /// message.
  double ring_share = 1;
  /// In 16 bits; empty: the formula of the rates above holds for all.
  std::vector<MeasuredGemm> gemms = {};

  bool operator==(const KernelRates&) const = default;
};

struct Gpu {
  double peak_flops = 1;               ///< dense, 16-bit, per second, as the vendor states it
  double reachable_flops = 1;          ///< the highest rate measured for large GEMMs
  Bytes memory = 0;                    ///< available to a program
  double memory_bytes_per_second = 1;  ///< as the vendor states it
  std::int32_t per_node = 8;
  /// From a device to its node, one way: all of its links, or the one to each device of a mesh.
  /// Measured if the source says so.
  Link inside;
  Link outside;  ///< between nodes, one way, per device
  Link host;     ///< to the host's memory, one way
  KernelRates kernels = {};
  std::string_view generation;  ///< "hopper": devices that share kernels; from a literal
  bool is_mesh = false;  ///< has a link as `inside` to each device of its node, and no switch
  /// In nodes of three or four, its links are divided among the others, and there is no switch.
  bool divides_links = false;

  bool operator==(const Gpu&) const = default;

  /// Whether two devices of a node can use all of their links between them.
  bool has_switch() const { return !is_mesh && !(divides_links && per_node >= 3 && per_node <= 4); }
  /// Returns the link between two devices of a node, in one direction.
  Link between_devices() const;
  /// The links as between_devices() that a collective over so many devices of a node uses on each
  /// of them.
  double links(std::int32_t members) const { return has_switch() ? 1 : std::max(1, members - 1); }
  double sustained_flops() const {
    return kernels.sustained_flops > 0 ? kernels.sustained_flops : 0.95 * reachable_flops;
  }
};

/// A known device, registered by one of the files in presets/.
struct GpuDef {
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::string source;  ///< where most of the numbers come from
  Gpu gpu;
  std::vector<std::string> sources = {};  ///< one source per number
};

using GpuRegistrar = Registrar<GpuDef>;

}  // namespace bubblescope::inline sim
