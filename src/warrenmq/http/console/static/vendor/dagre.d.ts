export class Graph {
  constructor(options?: any);
  setGraph(label: any): void;
  setDefaultEdgeLabel(label: () => any): void;
  setNode(name: string, label: any): void;
  setEdge(from: string, to: string, label: any, name?: string): void;
  node(name: string): any;
  edge(edge: any): any;
  nodes(): string[];
  edges(): any[];
  graph(): any;
}
export function layout(graph: Graph): void;
