// Whether a page is mapped, of what the four tables say: c names the page's region, h a slot, s what that slot holds,
// sp the first free slot of the region.
//
// Invariant: the one place of this comparison, for the unit and for the proof of Lemma 1. That c is at most the page
// needs no comparator: a slot from c on that is in use holds a page of c's region, none before c.

module rtmmu_check #(
    parameter integer W = 12
) (
    input  logic [W-1:0] page,
    input  logic [W-1:0] c,
    input  logic [W-1:0] h,
    input  logic [  W:0] sp,
    input  logic [W-1:0] s,
    output logic         mapped
);
  assign mapped = c <= h && {1'b0, h} < sp && s == page;
endmodule
