#include "layline/trainer/tally/tally.h"

#include <utility>

namespace layline::trainer::tally {

namespace {

thread_local Owner owner_now = Owner::kNone;
thread_local Moment moment_now;

}  // namespace

Owner current_owner() { return owner_now; }
Moment current_moment() { return moment_now; }

OwnerScope::OwnerScope(Owner owner) : outer_(std::exchange(owner_now, owner)) {}
OwnerScope::~OwnerScope() { owner_now = outer_; }

MomentScope::MomentScope(Moment moment) : outer_(std::exchange(moment_now, moment)) {}
MomentScope::~MomentScope() { moment_now = outer_; }

}  // namespace layline::trainer::tally
