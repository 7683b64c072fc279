// A slice of a Chrome trace, as its events state it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/units.h"
#include "traces/measured/op_names.h"

namespace bubblescope::traces {

/// A complete event ("X"), or a begin with its end ("B", "E").
struct ChromeSlice {
  std::string name;
  std::string category;
  std::uint32_t thread = 0;  ///< index into ChromeEvents::threads
  Nanos start = 0;
  Nanos end = 0;
  std::string op;                           ///< args.op, which our own traces have
  std::optional<std::int64_t> number;       ///< args["Ev Idx"], see RunningNumbers
  std::optional<std::int64_t> step;         ///< args.step, or args.iteration
  std::optional<std::int64_t> microbatch;   ///< args.mb_id, args.microbatch and the like
  std::optional<std::int64_t> chunk;        ///< args.model_chunk, or args.chunk
  std::optional<std::int64_t> stage;        ///< args.stage
  std::optional<std::int64_t> pp_rank;      ///< args.pp_rank, or args.pp
  std::optional<std::int64_t> rank;         ///< args.rank
  std::optional<std::int64_t> replica;      ///< args.dp_rank, args.replica and the like
  std::optional<std::int64_t> tensor;       ///< args.tp_rank, args.tp and the like
  std::vector<std::string> arguments = {};  ///< those that rules use, in their order
  std::optional<NamedOp> ruled = {};        ///< by a rule that needs more than the name
};

}  // namespace bubblescope::traces
