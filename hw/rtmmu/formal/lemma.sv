// Lemma 1 of the paper, an operation a step, by induction: for N = 2^W pages and any number of operations.
//
// c, h and s begin with anything, sp with zero. A step makes a region that overlaps none, or unmaps one, or fills a page
// that is not filled. `first`, `last` and `filled` are the plain truth. The comparison is the unit's own (rtmmu_check).
//
// Invariant proved (the first assertion): the tables call a page mapped if and only if it was filled since its live
// region was made. The other assertions make it inductive: what lies in a stack is filled, in its region, and points
// back; stacks of pages where no region begins are empty.

module lemma #(
    parameter integer W = 2
) (
    input logic clk
);
  localparam integer N = 2 ** W;

  (* anyseq *)logic [1:0] operation;
  (* anyseq *)logic [W-1:0] a, e;
  (* anyconst *)logic [N*W-1:0] c_garbage, h_garbage, s_garbage;

  logic [W-1:0] c[N], h[N], s[N];
  logic [W:0] sp[N];
  // The truth: per page whether a region begins there, and that region's last page; whether a page is filled.
  logic [N-1:0] begins, filled;
  logic [W-1:0] last[N];
  logic started = 1'b0;

  // The live region of each page.
  logic [N-1:0] live;
  logic [W-1:0] first[N];
  always_comb
    for (int b = 0; b < N; b++) begin
      live[b]  = 1'b0;
      first[b] = '0;
      for (int i = 0; i <= b; i++)
        if (begins[i] && W'(b) <= last[i]) begin
          live[b]  = 1'b1;
          first[b] = W'(i);
        end
    end

  logic free;
  always_comb begin
    free = a <= e;
    for (int b = 0; b < N; b++) if (W'(b) >= a && W'(b) <= e && live[b]) free = 1'b0;
  end

  always_ff @(posedge clk) begin
    started <= 1'b1;
    if (!started) begin
      begins <= '0;
      filled <= '0;
      for (int b = 0; b < N; b++) begin
        c[b]  <= c_garbage[b*W+:W];
        h[b]  <= h_garbage[b*W+:W];
        s[b]  <= s_garbage[b*W+:W];
        sp[b] <= '0;
      end
    end else
      case (operation)
        2'd0:
        if (free) begin
          begins[a] <= 1'b1;
          last[a] <= e;
          sp[a] <= {1'b0, a};
          c[a] <= a;
          for (int b = 0; b < N; b++) if (W'(b) >= a && W'(b) <= e) filled[b] <= 1'b0;
        end
        2'd1:
        if (begins[a]) begin
          begins[a] <= 1'b0;
          sp[a] <= {1'b0, a};
          c[a] <= a;
        end
        2'd2:
        if (live[a] && !filled[a]) begin
          filled[a] <= 1'b1;
          c[a] <= first[a];
          h[a] <= sp[first[a]][W-1:0];
          s[sp[first[a]][W-1:0]] <= a;
          sp[first[a]] <= sp[first[a]] + 1'b1;
        end
        default: ;
      endcase
  end

  logic [N-1:0] mapped;
  generate
    for (genvar b = 0; b < N; b++) begin : pages
      rtmmu_check #(
          .W(W)
      ) check (
          .page(W'(b)),
          .c(c[b]),
          .h(h[b]),
          .sp(sp[c[b]]),
          .s(s[h[b]]),
          .mapped(mapped[b])
      );
      logic [W:0] in_region;
      always_comb begin
        in_region = '0;
        for (int i = 0; i < N; i++) if (live[i] && first[i] == W'(b) && filled[i]) in_region = in_region + 1'b1;
      end
      always_comb
        if (started) begin
          assert (mapped[b] == (live[b] && filled[b]));
          assert (begins[b] || sp[b] <= (W + 1)'(b));
          // As many slots as pages of the region are filled, so that the stack never leaves its region.
          assert (!begins[b] || sp[b] == (W + 1)'(b) + in_region);
          assert (!begins[b] || last[b] >= W'(b));
          assert (!(live[b] && filled[b]) || c[b] == first[b]);
          for (int i = 0; i < N; i++) begin
              assert (!(begins[b] && begins[i] && i > b) || last[b] < W'(i));
            // What a slot of a stack holds is filled, of that region, and knows its slot.
            assert (!(begins[b] && i >= b && (W + 1)'(i) < sp[b]) || live[s[i]] && first[s[i]] == W'(b) && filled[s[i]] && h[s[i]] == W'(i));
          end
        end
    end
  endgenerate

  always_comb
    if (started) begin
      full : cover (&(live & filled));
      stale : cover (live[N-1] && !filled[N-1] && begins[c[N-1]] && sp[c[N-1]] > {1'b0, c[N-1]} && h[N-1] >= c[N-1] && {1'b0, h[N-1]} < sp[c[N-1]]);
    end
endmodule
