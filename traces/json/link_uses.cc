// Writes links in the order in which the report has them.
#include "traces/json/link_uses.h"

namespace bubblescope::traces {

void write_links(JsonWriter& json, const std::vector<LinkUse>& links, int indent) {
  json.begin_array();
  for (const LinkUse& link : links) {
    json.line(indent).begin_object().member("name", link.name).member("bytes", link.bytes);
    json.member("busy_ns", link.busy).member("shared_ns", link.shared);
    json.member("utilization", link.utilization).end_object();
  }
  json.end_array();
}

}  // namespace bubblescope::traces
