// Adds the flags under their names here and in Megatron-LM.
#include "tools/flags/uneven_ends_options.h"

#include "sim/ir/error.h"

namespace bubblescope::tools {

void add_uneven_ends_options(CommandFlags& app, UnevenEnds& ends) {
  const InRange layers(0, 100'000);
  app.add_option("--first-layers,--decoder-first-pipeline-num-layers", ends.first,
                 "megatron: layers of the first rank; ranks without a number have equally many")
      ->check(layers);
  app.add_option("--last-layers,--decoder-last-pipeline-num-layers", ends.last,
                 "megatron: layers of the last rank")
      ->check(layers);
  app.add_flag("--account-for-embedding,--account-for-embedding-in-pipeline-split",
               ends.counts_embedding,
               "megatron: the embedding counts as a layer of the first stage");
  app.add_flag("--account-for-loss,--account-for-loss-in-pipeline-split", ends.counts_loss,
               "megatron: the loss counts as a layer of the last stage");
}

void expect_one_rule(const UnevenEnds& ends) {
  if ((ends.first || ends.last) && (ends.counts_embedding || ends.counts_loss))
    throw Error("--first-layers and --last-layers exclude --account-for-...; leave one out");
}

}  // namespace bubblescope::tools
