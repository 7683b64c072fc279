// From measured steps to costs in company: how long ops and messages take by how many ranks of
// their device are busy.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exec/calibration/calibrate.h"

namespace bubblescope {

/// [stage][kind][busy ranks - 1]; empty where no op ran in such company.
using CompanyCosts = std::vector<std::array<std::vector<std::optional<Estimate>>, kComputeKinds>>;

struct CompanyRequest {
  std::int32_t stages = 1;
  std::int32_t ranks_per_device = 1;  ///< neighbouring ranks share one
};

/// An op counts for a number of busy ranks where, on average over its time, so many were busy to
/// within a quarter of a rank.
CompanyCosts find_company_costs(std::span<const Observation> observations,
                                const CompanyRequest& request);

/// What messages take on their way with 0, 1, 2, ... ranks of the sender's device busy, counted in
/// the same way.
std::vector<std::optional<Estimate>> find_message_costs(std::span<const Observation> observations,
                                                        std::int32_t ranks_per_device);

/// What EVICT and LOAD of a stage take with 0, 1, 2, ... ranks of their device busy.
struct CopyCosts {
  std::vector<std::optional<Estimate>> evict;
  std::vector<std::optional<Estimate>> load;
};

/// [stage], counted in the same way.
std::vector<CopyCosts> find_copy_costs(const Observation& observation,
                                       const CompanyRequest& request);

/// What messages take in whatever company.
std::optional<Estimate> find_message_time(std::span<const Observation> observations);

/// What one kind of op takes with 1, 2, ... ranks busy: the means; between and beyond numbers that
/// were not seen, a straight line, and the nearest that was; never less than alone. Empty where
/// nothing was seen at all.
std::vector<Nanos> fill_company(const std::vector<std::optional<Estimate>>& seen);

}  // namespace bubblescope
