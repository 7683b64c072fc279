// The classes Bubble and RankReport. Both can be copied and pickled.
#include "tools/python/binding/bind_report.h"

#include <fmt/format.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/analysis/report.h"

namespace bubblescope::tools {

namespace nb = nanobind;

namespace {

std::map<std::string, Nanos> by_kind(const RankReport& rank) {
  std::map<std::string, Nanos> times;
  for (int kind = 0; kind < kBusyKinds; ++kind)
    times.emplace(name(static_cast<BusyKind>(kind)), rank.busy_by_kind[kind]);
  return times;
}

std::map<std::string, Nanos> by_cause(const RankReport& rank) {
  std::map<std::string, Nanos> times;
  for (int cause = 0; cause < kIdleCauses; ++cause)
    times.emplace(name(static_cast<IdleCause>(cause)), rank.idle_by_cause[cause]);
  return times;
}

// A pickle holds all members of a value. A member that is added later has to be added here: the
// structured bindings do not compile without it.

auto state_of(const Bubble& bubble) {
  const auto& [ratio, overhead, span_rate, time] = bubble;
  return std::make_tuple(ratio, overhead, span_rate, time);
}

auto state_of(const BufferPeak& peak) {
  const auto& [count, bytes] = peak;
  return std::make_tuple(count, bytes);
}

auto state_of(const WeightReport& weights) {
  const auto& [warmup, staleness, versions, bytes] = weights;
  return std::make_tuple(warmup, staleness, versions, bytes);
}

template <class Value>
auto state_of(const std::optional<Value>& value) {
  return value ? std::optional(state_of(*value)) : std::nullopt;
}

auto state_of(const Peak& peak) {
  const auto& [chunks, activations, units, bytes, at, outputs, gathered] = peak;
  return std::make_tuple(chunks, activations, units, bytes, at, state_of(outputs),
                         state_of(gathered));
}

auto state_of(const RankReport& rank) {
  const auto& [is_recorded, busy, idle, first, last, sends, peak, weights, kinds, causes] = rank;
  return std::make_tuple(is_recorded, busy, idle, first, last, sends, state_of(peak),
                         state_of(weights), kinds, causes);
}

template <class Value>
using State = decltype(state_of(std::declval<const Value&>()));

template <class Value>
Value restore(const State<Value>& state) {
  return std::apply([](const auto&... members) { return Value{members...}; }, state);
}

template <class Value>
std::optional<Value> restore_optional(const std::optional<State<Value>>& state) {
  return state ? std::optional(restore<Value>(*state)) : std::nullopt;
}

template <>
Peak restore(const State<Peak>& state) {
  const auto& [chunks, activations, units, bytes, at, outputs, gathered] = state;
  return {chunks,
          activations,
          units,
          bytes,
          at,
          restore_optional<BufferPeak>(outputs),
          restore_optional<BufferPeak>(gathered)};
}

template <>
RankReport restore(const State<RankReport>& state) {
  const auto& [is_recorded, busy, idle, first, last, sends, peak, weights, kinds, causes] = state;
  return {is_recorded,
          busy,
          idle,
          first,
          last,
          sends,
          restore<Peak>(peak),
          restore_optional<WeightReport>(weights),
          kinds,
          causes};
}

/// Makes a class one whose values can be copied and pickled.
template <class Value>
void add_pickling(nb::class_<Value>& type) {
  type.def("__getstate__", [](const Value& value) { return state_of(value); });
  type.def("__setstate__", [](Value& value, const State<Value>& state) {
    new (&value) Value(restore<Value>(state));
  });
}

template <class Value>
bool is_equal(const Value& left, const Value& right) {
  return left == right;
}

}  // namespace

void bind_report(nb::module_& module) {
  module.def("cause_names", [] {
    std::vector<std::string> names;
    for (int cause = 0; cause < kIdleCauses; ++cause)
      names.emplace_back(name(static_cast<IdleCause>(cause)));
    return names;
  });
  nb::class_<Bubble> bubbles(module, "Bubble");
  bubbles.def_ro("ratio", &Bubble::ratio)
      .def_ro("overhead", &Bubble::overhead)
      .def_ro("span_rate", &Bubble::span_rate)
      .def_ro("time", &Bubble::time)
      .def("__eq__", &is_equal<Bubble>, nb::is_operator())
      .def("__hash__", [](const Bubble& bubble) { return bubble.time; })
      .def("__repr__", [](const Bubble& bubble) {
        return fmt::format("Bubble(ratio={:.6g}, overhead={:.6g}, span_rate={:.6g}, time={})",
                           bubble.ratio, bubble.overhead, bubble.span_rate, bubble.time);
      });
  add_pickling(bubbles);
  nb::class_<RankReport> ranks(module, "RankReport");
  ranks.def_ro("busy", &RankReport::busy)
      .def_ro("idle", &RankReport::idle)
      .def_ro("first_start", &RankReport::first_start)
      .def_ro("last_end", &RankReport::last_end)
      .def_ro("sends", &RankReport::sends)
      .def_prop_ro("peak_chunks", [](const RankReport& rank) { return rank.peak.chunks; })
      .def_prop_ro("peak_activations", [](const RankReport& rank) { return rank.peak.activations; })
      .def_prop_ro("peak_units", [](const RankReport& rank) { return rank.peak.units; })
      .def_prop_ro("peak_memory_bytes", [](const RankReport& rank) { return rank.peak.bytes; })
      .def_prop_ro("busy_by_kind", by_kind)
      .def_prop_ro("idle_by_cause", by_cause)
      .def("__eq__", &is_equal<RankReport>, nb::is_operator())
      .def("__hash__", [](const RankReport& rank) { return rank.busy; })
      .def("__repr__", [](const RankReport& rank) {
        return fmt::format("RankReport(busy={}, idle={}, sends={}, peak_activations={:g})",
                           rank.busy, rank.idle, rank.sends, rank.peak.activations);
      });
  add_pickling(ranks);
}

}  // namespace bubblescope::tools
