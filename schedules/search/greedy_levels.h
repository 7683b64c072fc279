// The greedy heuristics under every cap, from the problem's own downwards.
#pragma once

#include "schedules/search/order_pool.h"

namespace bubblescope::schedules {

/// Offers the orders that the greedy heuristics of the problem's placement find under its caps.
void offer_greedy_orders(OrderPool& pool);

/// The same, and also under every smaller cap at which they find another order, until no order can
/// be shorter than the pool's best.
void offer_greedy_orders_of_all_levels(OrderPool& pool);

}  // namespace bubblescope::schedules
